"""Noise processes: closed forms, ends, conversions there and back, and keyed noise."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seq2see.errors import InputError
from seq2see.models.noise import (
    PROCESSES,
    Cosine,
    Parts,
    Process,
    Straight,
    gaussian,
    keyed,
    noise_process,
)

processes = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
TIMES = torch.linspace(0, 1, 1001, dtype=torch.float64)
inside = st.floats(0.01, 0.99)


def numbers(count: int = 2) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(5)
    shape = (count, 3, 2, 5)
    return (
        torch.randn(shape, generator=draw, dtype=torch.float64),
        torch.randn(shape, generator=draw, dtype=torch.float64),
    )


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


def test_the_cosine_schedule_preserves_variance_and_is_the_papers() -> None:
    alpha, sigma = Cosine()(TIMES)
    close(alpha**2 + sigma**2, torch.ones_like(TIMES))
    squared = [math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2 for t in TIMES.tolist()]
    close(alpha**2, torch.tensor(squared, dtype=torch.float64) / squared[0])


@processes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_picture_turns_into_noise_little_by_little(process: Process, dtype: torch.dtype) -> None:
    alpha, sigma = process.schedule(TIMES.to(dtype))
    assert (alpha[0], sigma[0], alpha[-1], sigma[-1]) == (1, 0, 0, 1)
    assert (alpha.diff() < 0).all() and (sigma.diff() > 0).all()
    assert process.schedule(torch.tensor(process.latest)).sigma > 0.99999


@pytest.mark.parametrize("schedule", [Cosine(), Straight()])
def test_slopes_are_derivatives_by_the_clock(schedule: Cosine | Straight) -> None:
    time = TIMES[1:].clone().requires_grad_()
    levels = schedule(time)
    (rate,) = torch.autograd.grad(schedule.clock(levels).sum(), time, retain_graph=True)
    for level, slope in zip(levels, schedule.slopes(levels), strict=True):
        (by_time,) = torch.autograd.grad(level.sum(), time, retain_graph=True)
        close(by_time, slope * rate)
    slopes = schedule.slopes(levels)
    one = levels.alpha * slopes.sigma - levels.sigma * slopes.alpha
    close(one, torch.ones_like(time))


@processes
@given(times=st.tuples(inside, inside))
def test_the_right_prediction_gives_back_picture_and_noise(
    process: Process, times: tuple[float, float]
) -> None:
    parts, time = Parts(*numbers()), torch.tensor(times, dtype=torch.float64)
    x = process.mix(parts, time)
    for row, (alpha, sigma) in enumerate(zip(*process.schedule(time), strict=True)):
        close(x[row], alpha * parts.picture[row] + sigma * parts.noise[row])
    for again in (
        process.parts(x, process.target(parts, time), time),
        process.parts_of(x, parts.picture, time),
    ):
        close(again.picture, parts.picture)
        close(again.noise, parts.noise)


@processes
@given(times=st.tuples(inside, inside))
def test_parts_of_any_prediction_give_it_back(process: Process, times: tuple[float, float]) -> None:
    x, prediction = numbers()
    time = torch.tensor(times, dtype=torch.float64)
    parts = process.parts(x, prediction, time)
    close(process.mix(parts, time), x)
    close(process.target(parts, time), prediction)


@given(time=inside)
def test_velocities_have_their_published_forms(time: float) -> None:
    parts, times = Parts(*numbers()), torch.full((2,), time, dtype=torch.float64)
    alpha, sigma = PROCESSES["velocity"].levels(times)
    close(PROCESSES["velocity"].target(parts, times), alpha * parts.noise - sigma * parts.picture)
    close(PROCESSES["flow"].target(parts, times), parts.noise - parts.picture)
    assert PROCESSES["noise"].target(parts, times) is parts.noise


def test_a_generator_depends_on_its_key_alone() -> None:
    first, second = (keyed("denoise/1"), keyed("denoise/2")), (keyed("denoise/2"),)
    together, alone = gaussian(first, (3, 2, 5)), gaussian(second, (3, 2, 5))
    assert together.shape == (2, 3, 2, 5)
    assert torch.equal(together[1], alone[0])
    assert not torch.equal(together[0], together[1])


def test_an_unknown_process_is_refused_by_name() -> None:
    assert noise_process("flow") is PROCESSES["flow"]
    with pytest.raises(InputError, match=r"^noise process 'eps' is not one of noise, velocity, fl"):
        noise_process("eps")
