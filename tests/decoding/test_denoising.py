"""Samplers against a Gaussian, whose exact denoiser is known; guidance, seeds, clipping, errors."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.decoding.denoising import SAMPLERS, Denoising, Move, Step, clipped, ddim, denoise
from seq2see.errors import InputError, WorkError
from seq2see.layers.trace import Trace, keep
from seq2see.models.noise import PROCESSES, Process, gaussian, keyed
from seq2see.text.specials import PAD

processes = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
samplers = pytest.mark.parametrize("sampler", SAMPLERS)
MEAN, STD = 0.6, 0.3
SHAPE = (2, 3, 5)


class Gaussian:
    """The best prediction for pixels N(mean, std²); prompt ids shift the mean by a tenth each."""

    def __init__(
        self,
        process: Process,
        shape: tuple[int, int, int] = SHAPE,
        mean: float = MEAN,
        std: float = STD,
    ) -> None:
        self.process = process
        self.shape = shape
        self.mean = mean
        self.variance = std**2
        self.rows: list[int] = []  # of each evaluation

    def read(self, prompts: Tensor) -> Tensor:
        words = torch.where(prompts == PAD, 0, prompts)
        return self.mean + words.sum(1).double()[:, None, None, None] / 10

    def __call__(self, x: Tensor, time: Tensor, memory: Tensor, trace: Trace | None = None) -> Any:
        self.rows.append(len(x))
        alpha, sigma = self.process.levels(time)
        # E[x_0 | x_t] of x_0 ~ N(mean, std²)
        slope = alpha * self.variance / (alpha**2 * self.variance + sigma**2)
        picture = memory + slope * (x - alpha * memory)
        keep(trace, "cross", memory)
        return self.process.target(self.process.parts_of(x, picture, time), time)


def draw(model: Any, process: Process, prompts: list[list[int]], **keys: Any) -> Tensor:
    """Pictures of seeds 0, 1, … in double precision."""
    seeds = keys.pop("seeds", range(len(prompts)))
    watched = {key: keys.pop(key) for key in ("watch", "traced") if key in keys}
    settings = Denoising(**{"clip": None, "guidance": 1.0} | keys)
    ids = torch.tensor(prompts)
    return denoise(model, process, ids, seeds, settings, dtype=torch.float64, **watched)


def exact(process: Process, count: int, mean: float, std: float) -> Tensor:
    """The end of the probability-flow path from the first noise of seeds 0, 1, …"""
    noise = gaussian([keyed(f"denoise/{seed}") for seed in range(count)], SHAPE).double()
    alpha, sigma = process.schedule(torch.tensor(process.latest, dtype=torch.float64))
    spread = (alpha**2 * std**2 + sigma**2).sqrt()  # of x at the first time
    return mean + std * (noise - alpha * mean) / spread


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shift", [0.5, 1.0, 3.0])
def test_the_shift_moves_the_log_odds_of_every_time(shift: float) -> None:
    times = Denoising(steps=10, shift=shift).times(0.999)
    assert times[0] == 0.999 and times[-1] == 0
    odds = torch.tensor(times, dtype=torch.float64)[1:-1] / 0.999
    even = torch.linspace(1, 0, 11, dtype=torch.float64)[1:-1]
    close(odds.logit(), even.logit() + math.log(shift))


@processes
@samplers
def test_shifted_steps_sample_the_same_distribution(sampler: str, process: Process) -> None:
    prompts = [[PAD]] * 200
    pictures = draw(Gaussian(process), process, prompts, sampler=sampler, steps=400, shift=3.0)
    assert pictures.mean().item() == pytest.approx(MEAN, abs=0.03)
    assert pictures.std().item() == pytest.approx(STD, rel=0.1)


@processes
def test_a_step_knows_its_time(process: Process) -> None:
    seen: list[Step] = []
    draw(Gaussian(process), process, [[PAD]], steps=4, shift=2.0, watch=seen.append)
    expected = Denoising(steps=4, shift=2.0).times(process.latest)
    assert [step.time for step in seen] == expected[1:]


means = st.floats(-2.0, 2.0)
spreads = st.floats(0.3, 2.0)


@processes
@pytest.mark.parametrize("sampler", ["ddim", "euler"])
@settings(max_examples=5)
@given(mean=means, std=spreads)
def test_deterministic_samplers_converge_to_the_exact_path(
    sampler: str, process: Process, mean: float, std: float
) -> None:
    """Both are of first order: half the error in twice the steps, at most about 6 / steps here."""
    model, target = Gaussian(process, mean=mean, std=std), exact(process, 3, mean, std)
    for steps in (10, 20, 40, 80, 160):
        pictures = draw(model, process, [[PAD]] * 3, sampler=sampler, steps=steps)
        assert (pictures - target).abs().max().item() < 8 / steps


@processes
@samplers
@settings(max_examples=8)
@given(mean=means, std=spreads, steps=st.integers(10, 100))
def test_a_gaussian_is_sampled_to_its_mean_and_standard_deviation(
    sampler: str, process: Process, mean: float, std: float, steps: int
) -> None:
    model = Gaussian(process, (1, 50, 80), mean, std)
    pictures = draw(model, process, [[PAD]] * 3, sampler=sampler, steps=steps)
    tolerance = 0.03 + 4 / steps  # for 12,000 pixels, and for the steps
    assert pictures.mean().item() == pytest.approx(mean, abs=tolerance * std)
    assert pictures.std().item() == pytest.approx(std, rel=tolerance)


def follow(process: Process, sampler: str, mean: float, variance: float, steps: int) -> Tensor:
    """The picture of seed 0 by the closed form of each step: a multiple of x_t − α_t m, and noise.

    With d = α_t² v + σ_t², the exact denoiser gives x_0 − m = α_t v / d · (x_t − α_t m) and
    ε = σ_t / d · (x_t − α_t m).
    """
    generator = keyed("denoise/0")
    x = gaussian([generator], SHAPE).double()
    times = torch.linspace(process.latest, 0, steps + 1, dtype=torch.float64)
    schedule = process.schedule
    for now, later in pairwise(times):
        (alpha, sigma), (next_alpha, next_sigma) = schedule(now), schedule(later)
        away = x - alpha * mean
        total = alpha**2 * variance + sigma**2
        if sampler == "euler":
            elapsed = schedule.clock(schedule(later)) - schedule.clock(schedule(now))
            slopes = schedule.slopes(schedule(now))
            rate = (slopes.alpha * alpha * variance + slopes.sigma * sigma) / total
            x = x + elapsed * (slopes.alpha * mean + rate * away)
            continue
        redrawn = 0.0  # share of the noise at the later time that is drawn anew
        if sampler == "ddpm":
            redrawn = 1 - (alpha * next_sigma / (next_alpha * sigma)) ** 2
        kept = next_sigma * (1 - redrawn) ** 0.5
        x = next_alpha * mean + (next_alpha * alpha * variance + kept * sigma) / total * away
        if sampler == "ddpm":
            x = x + next_sigma * redrawn**0.5 * gaussian([generator], SHAPE).double()
    return x


@processes
@samplers
@settings(max_examples=15)
@given(mean=means, std=spreads, steps=st.integers(1, 12))
def test_a_gaussian_follows_the_closed_form_of_each_step(
    sampler: str, process: Process, mean: float, std: float, steps: int
) -> None:
    model = Gaussian(process, mean=mean, std=std)
    picture = draw(model, process, [[PAD]], sampler=sampler, steps=steps)
    close(picture, follow(process, sampler, mean, std**2, steps))


@processes
@given(times=st.tuples(st.floats(0.3, 0.99), st.floats(0.0, 0.25)))
def test_ddpm_draws_from_the_posterior(process: Process, times: tuple[float, float]) -> None:
    """x_s given x_t and x_0 by Bayes' rule: the precisions of both add up."""
    now, later = (torch.tensor([time], dtype=torch.float64) for time in times)
    generators = [keyed("x")]
    x, picture = (gaussian(generators, SHAPE).double() for _ in range(2))
    parts = process.parts_of(x, picture, now)
    alpha, sigma = process.levels(now)
    before_alpha, before_sigma = process.levels(later)
    ratio = alpha / before_alpha
    passed = sigma**2 - ratio**2 * before_sigma**2  # variance of x_t given x_s
    variance = before_sigma**2 * passed / sigma**2
    mean = ratio * before_sigma**2 / sigma**2 * x + before_alpha * passed / sigma**2 * picture
    for fresh in (torch.zeros_like(x), torch.ones_like(x)):
        move = Move(x, parts, now, later, lambda fresh=fresh: fresh)
        close(ddim(process, move, eta=1.0), mean + variance.sqrt() * fresh)


@processes
def test_the_last_step_arrives_at_the_predicted_picture(process: Process) -> None:
    seen: list[Step] = []
    for sampler in ("ddim", "ddpm"):
        pictures = draw(
            Gaussian(process), process, [[PAD]], sampler=sampler, steps=4, watch=seen.append
        )
        close(seen[-1].picture, pictures)
    assert [step.number for step in seen] == [1, 2, 3, 4] * 2
    assert all(step.steps == 4 and step.x.shape == (1, *SHAPE) for step in seen)


def test_eta_leads_from_nothing_drawn_to_ddpm() -> None:
    process = PROCESSES["noise"]
    model = Gaussian(process)
    plain = draw(model, process, [[PAD]], steps=5)
    assert torch.equal(draw(model, process, [[PAD]], steps=5), plain)
    ddpm = draw(model, process, [[PAD]], steps=5, sampler="ddpm")
    assert torch.equal(draw(model, process, [[PAD]], steps=5, eta=1.0), ddpm)
    half = draw(model, process, [[PAD]], steps=5, eta=0.5)
    assert not torch.equal(half, plain) and not torch.equal(half, ddpm)


@processes
def test_guidance_leads_from_no_prompt_through_the_prompt_beyond_it(process: Process) -> None:
    model = Gaussian(process)
    keys: dict[str, Any] = {"steps": 3}
    by_guidance = {
        guidance: draw(model, process, [[7]], guidance=guidance, **keys)
        for guidance in (0.0, 0.5, 1.0, 2.0)
    }
    assert model.rows == [1] * 3 + [2] * 3 + [1] * 3 + [2] * 3
    assert torch.equal(by_guidance[0.0], draw(model, process, [[PAD]], **keys))
    # The model is linear in the mean of the prompt, and so is what it paints.
    step = by_guidance[1.0] - by_guidance[0.0]
    close(by_guidance[0.5], by_guidance[0.0] + 0.5 * step)
    close(by_guidance[2.0], by_guidance[0.0] + 2 * step)
    assert step.mean() > 0.5


@samplers
def test_a_picture_depends_on_its_own_seed_and_prompt_alone(sampler: str) -> None:
    process = PROCESSES["velocity"]
    model = Gaussian(process)
    keys: dict[str, Any] = {"sampler": sampler, "steps": 4, "guidance": 3.0}
    together = draw(model, process, [[7, 4], [5, PAD], [7, 4]], seeds=[3, 9, 4], **keys)
    close(draw(model, process, [[5]], seeds=[9], **keys)[0], together[1])
    others = draw(model, process, [[8, 8], [5, PAD], [PAD, PAD]], seeds=[1, 9, 2], **keys)
    assert torch.equal(others[1], together[1])
    assert (together[0] - together[2]).abs().min() > 1e-6


def test_a_traced_step_has_the_attention_to_its_prompts() -> None:
    process = PROCESSES["velocity"]
    seen: list[Step] = []
    draw(
        Gaussian(process),
        process,
        [[4], [9]],
        steps=2,
        guidance=2.0,
        watch=seen.append,
        traced=True,
    )
    for step in seen:
        assert step.trace is not None
        assert step.trace.weights["cross"].flatten().tolist() == pytest.approx([1.0, 1.5])


def test_predicted_pictures_are_clipped_or_scaled() -> None:
    picture = torch.tensor([[0.5, -3.0, 0.2, 1.5], [0.1, 0.2, -0.3, 0.9]])[:, None, None]
    assert clipped(picture, 1.0).flatten().tolist() == pytest.approx(
        [0.5, -1, 0.2, 1, 0.1, 0.2, -0.3, 0.9]
    )
    scaled = clipped(picture, 1.0, quantile=2 / 3)  # the third magnitude of four
    expected = torch.tensor([[0.5 / 1.5, -1, 0.2 / 1.5, 1], [0.1, 0.2, -0.3, 0.9]])
    torch.testing.assert_close(scaled[:, 0, 0], expected)


@samplers
def test_clipping_keeps_every_predicted_picture_in_range(sampler: str) -> None:
    process = PROCESSES["noise"]
    seen: list[Step] = []
    pictures = draw(
        Gaussian(process), process, [[5]], sampler=sampler, steps=6, clip=0.9, watch=seen.append
    )
    assert all(step.picture.abs().max() <= 0.9 for step in seen)
    assert pictures.isfinite().all()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sampler": "heun"}, "sampler 'heun' is not one of ddim, ddpm, euler"),
        ({"steps": 0}, "steps (0) must be at least 1"),
        ({"guidance": -1.0}, "guidance (-1.0) must be a number of at least 0"),
        ({"guidance": float("nan")}, "guidance (nan) must be a number of at least 0"),
        ({"eta": 1.5}, "eta (1.5) must be between 0 and 1"),
        ({"clip": 0.0}, "clip (0.0) must be above 0"),
        ({"quantile": 0.0}, "quantile (0.0) must be above 0 and at most 1"),
        ({"shift": 0.0}, "shift (0.0) must be a number above 0"),
        ({"shift": float("nan")}, "shift (nan) must be a number above 0"),
    ],
)
def test_wrong_settings_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        Denoising(**keys)
    assert str(error.value) == message


def test_seeds_and_prompts_must_be_equally_many() -> None:
    process = PROCESSES["flow"]
    with pytest.raises(InputError, match="2 seeds are given for 1 prompts"):
        draw(Gaussian(process), process, [[4]], seeds=[1, 2])


def test_a_model_that_gives_no_numbers_is_a_failure() -> None:
    process = PROCESSES["flow"]

    class Broken(Gaussian):
        def __call__(self, *inputs: Any) -> Any:
            return super().__call__(*inputs) * float("nan")

    with pytest.raises(WorkError, match="not a number"):
        draw(Broken(process), process, [[4]])
