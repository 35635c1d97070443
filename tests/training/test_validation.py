"""Validation within its share of the time: one share for a run, chosen by measuring."""

from collections.abc import Iterator
from typing import Any

import pytest
from torch import nn

from seq2see.recipe.schema import TrainConfig
from seq2see.training import validation
from seq2see.training.budget import Budget
from seq2see.training.position import Position
from seq2see.training.report import Validation
from seq2see.training.validation import affordable, validate


class Slow:
    """A validation that takes a fixed time and a time per share, of which it has a least one."""

    def __init__(self, fixed: float, whole: float, least: float = 0.0) -> None:
        self.fixed = fixed
        self.whole = whole
        self.least = least
        self.now = 0.0
        self.shares: list[float] = []

    def __call__(self, model: nn.Module, share: float) -> Validation:
        assert not model.training
        self.shares.append(share)
        used = max(share, self.least)
        self.now += self.fixed + used * self.whole
        return Validation(1.0, {}, "", [], share=used)


@pytest.fixture
def model() -> nn.Module:
    return nn.Linear(1, 1).eval()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def make(fixed: float, whole: float, least: float = 0.0) -> Slow:
        made = Slow(fixed, whole, least)
        monkeypatch.setattr(validation.time, "perf_counter", lambda: made.now)
        return made

    yield make


@pytest.mark.parametrize(
    ("fixed", "whole", "expected"), [(0.0, 2.0, 1.0), (0.0, 12.0, 0.25), (0.0, 300.0, 0.01)]
)
def test_the_share_takes_about_the_time_allowed(
    slow: Any, model: nn.Module, fixed: float, whole: float, expected: float
) -> None:
    run = slow(fixed, whole)
    assert affordable(model, run, limit=3.0) == pytest.approx(expected)
    assert run.now <= 3 * 4 / 3 + 300 / 64  # the probes cost little


@pytest.mark.parametrize("least", [0.01, 0.06, 0.2])
def test_a_small_set_is_not_thought_slower_than_it_is(
    slow: Any, model: nn.Module, least: float
) -> None:
    run = slow(0.0, 12.0, least)  # the smallest probe takes more than its share
    assert affordable(model, run, limit=3.0) == pytest.approx(0.25)
    assert run.now <= 3 * 4 / 3  # the probes cost little


def test_a_set_that_is_too_small_to_be_divided_is_used_as_a_whole(
    slow: Any, model: nn.Module
) -> None:
    assert affordable(model, slow(0.0, 2.0, 1.0), limit=3.0) == 1.0


def test_fixed_costs_never_make_it_longer(slow: Any, model: nn.Module) -> None:
    run = slow(1.0, 20.0)
    share = affordable(model, run, limit=3.0)
    assert 0.03 < share < 0.1 and 1.0 + 20.0 * share <= 3.0


def budget(position: Position, **keys: Any) -> Budget:
    return Budget(TrainConfig.model_validate(keys), position, started=0.0)


def test_the_first_validation_chooses_for_the_whole_run(slow: Any, model: nn.Module) -> None:
    run, position = slow(0.0, 12.0), Position()
    timed = budget(position, minutes=5)
    validate(model, run, timed, {})
    assert position.validation_share == pytest.approx(0.25)
    assert position.validation_seconds == run.now and timed.validation_seconds == 3.0
    assert model.training
    run.whole = 40.0  # the machine became busy
    before = len(run.shares)
    validate(model, run, timed, {})
    assert run.shares[before:] == [position.validation_share]
    assert position.validation_seconds == run.now and timed.validation_seconds == 10.0


@pytest.mark.parametrize("keys", [{"steps": 10}, {"epochs": 2}])
def test_steps_and_epochs_validate_on_everything(
    slow: Any, model: nn.Module, keys: dict[str, int]
) -> None:
    run, position = slow(0.0, 1000.0), Position()
    validate(model, run, budget(position, **keys), {})
    assert run.shares == [1.0] and position.validation_share == 1.0
    validate(model, run, budget(position, minutes=1), {})  # continued with another budget
    assert run.shares == [1.0, 1.0]


def test_scores_of_an_earlier_version_are_those_of_the_whole_set(
    slow: Any, model: nn.Module
) -> None:
    run, position = slow(0.0, 1000.0), Position(validations={"update-00000001": 1.0})
    validate(model, run, budget(position, minutes=1), {})
    assert run.shares == [1.0]
