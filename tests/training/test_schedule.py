"""Learning rates against the published facts, and their shapes."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.recipe.schema import TrainConfig
from seq2see.training.schedule import learning_rate


def config(**keys: object) -> TrainConfig:
    return TrainConfig.model_validate({"steps": 1000, **keys})


@pytest.mark.parametrize(
    ("warmup", "update", "rate"),
    [(3000, 2, "5.4e-07"), (3000, 3000, "8.1e-04"), (4000, 4000, "7.0e-04")],
)
def test_published_rates_of_width_512(warmup: int, update: int, rate: str) -> None:
    assert f"{learning_rate(config(warmup=warmup), 512, update, 0.0):.1e}" == rate


@given(update=st.integers(1, 10**7), warmup=st.integers(1, 10**5), width=st.integers(1, 4096))
def test_the_papers_formula(update: int, warmup: int, width: int) -> None:
    expected = width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    assert learning_rate(config(warmup=warmup), width, update, 0.0) == pytest.approx(
        expected, rel=1e-12
    )


@given(update=st.integers(1, 10**6))
def test_in_updates_of_ten_batches_the_rate_is_the_same_at_the_same_sentence(update: int) -> None:
    per_batch = learning_rate(config(warmup=3000), 512, 10 * update, 0.0)
    peak = (512 * 300) ** -0.5 * 10**-0.5
    assert learning_rate(config(warmup=300, lr=peak), 512, update, 0.0) == pytest.approx(
        per_batch, rel=1e-12
    )


def test_the_peak_is_at_the_end_of_the_warm_up_and_is_lr_where_given() -> None:
    rates = [learning_rate(config(warmup=7, lr=0.5), 16, update, 0.0) for update in range(1, 30)]
    assert max(rates) == rates[6] == 0.5
    assert rates[:7] == sorted(rates[:7]) and rates[6:] == sorted(rates[6:], reverse=True)
    assert len(set(rates)) == len(rates)


def test_linear_rises_stays_and_falls_to_zero() -> None:
    steps, shape = 100, config(schedule="linear", lr=0.2, warmup=10, decay=0.3)
    rates = [
        learning_rate(shape, 16, update, (update - 1) / steps) for update in range(1, steps + 2)
    ]
    assert rates[:10] == pytest.approx([0.02 * n for n in range(1, 11)])
    assert rates[9:70] == [0.2] * 61
    falling = rates[70:]
    assert all(high - low == pytest.approx(0.2 / 30) for high, low in pairwise(falling))
    assert rates[steps] == 0.0
    assert (
        learning_rate(shape, 16, 500, 1.7) == 0.0
    )  # a clock may run over, the rate must not turn negative


def test_linear_without_decay_stays() -> None:
    assert learning_rate(config(schedule="linear", lr=0.2, warmup=1, decay=0.0), 16, 50, 1.0) == 0.2


@given(progress=st.floats(0, 1), decay=st.floats(0, 1), update=st.integers(1, 1000))
def test_linear_is_never_negative_nor_above_its_peak(
    progress: float, decay: float, update: int
) -> None:
    rate = learning_rate(
        config(schedule="linear", lr=0.2, warmup=30, decay=decay), 16, update, progress
    )
    assert 0 <= rate <= 0.2 and math.isfinite(rate)
