"""Budgets: the time of the whole command, warm-ups that fit, and the time kept to finish."""

from collections.abc import Iterator
from typing import Any

import pytest

from seq2see.recipe.schema import TrainConfig
from seq2see.training import budget
from seq2see.training.budget import Budget, clock
from seq2see.training.position import Position
from seq2see.training.schedule import learning_rate


class Clock:
    """Stands in for the clock of the machine."""

    now = 0.0


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(budget.time, "perf_counter", lambda: clock.now)
    yield clock


def begun(
    at: Clock, preparation: float = 0.0, position: Position | None = None, **keys: Any
) -> Any:
    """A budget whose preparation took a while."""
    config = TrainConfig.model_validate(keys)
    result = Budget(config, position or Position(), started=at.now)
    at.now += preparation
    result.begin()
    return result


def test_preparation_counts_and_so_do_earlier_processes(at: Clock) -> None:
    at.now = 1000.0
    run = begun(at, 20.0, Position(update=9, seconds=60.0, preparation_seconds=15.0), minutes=5)
    assert run.seconds() == 80.0 and run.position.preparation_seconds == 35.0
    assert run.seconds_left() == 220.0
    spent = 80 - 35
    assert run.progress() == pytest.approx(spent / (300 - 35 - spent / 9))


def test_training_ends_early_enough_for_the_rest(at: Clock) -> None:
    said: list[str] = []
    run = begun(at, 20.0, minutes=5, average=3)
    run.position.update = 300
    at.now = 50.0
    run.validation_seconds, run.saving_seconds = 3.0, 1.0
    run.position.validation_share = 0.25
    run.reserve(10.0, "250 of 1,000 sentences", said.append)
    rest = 1.2 * (2 * (3.0 + 1.0) + 10.0) + 1.0
    assert run.position.finish_seconds == pytest.approx(rest)
    assert said == [
        "validation on 250 of 1,000 sentences, so that it takes at most 12% of the time",
        "0:22 of 5:00 are reserved for the last validation, that of the average and the test sets",
    ]
    run.reserve(10.0, "", pytest.fail)
    at.now, run.position.update = 300 - rest - 0.5, 2500  # an update takes a tenth of a second
    assert 0.99 < run.progress() < 1
    at.now += 0.45
    assert run.progress() == 1


def test_a_budget_that_is_too_small_gives_an_update_and_says_so(at: Clock) -> None:
    said: list[str] = []
    run = begun(at, 4.0, minutes=0.05)
    assert run.progress() == 0
    run.position.update = 1
    at.now += 0.5
    assert run.progress() == 1
    run.end(said.append)
    small = "train.minutes = 0.05 is too small: preparation took 0:04"
    assert said == [f"{small}, and validation and test sets take about 0:00 more"]


def test_training_gets_half_of_the_time_even_if_finishing_seems_to_take_more(at: Clock) -> None:
    said: list[str] = []
    run = begun(at, 20.0, minutes=1, average=1)
    run.position.update, run.position.validation_share = 50, 1.0
    at.now = 25.0
    run.reserve(200.0, "", said.append)
    assert said == ["0:20 of 1:00 are reserved for the last validation and the test sets"]
    assert 0.2 < run.progress() < 0.3
    run.end(said.append)
    small = "train.minutes = 1 is too small: preparation took 0:20"
    assert said[1:] == [f"{small}, and validation and test sets take about 4:01 more"]
    for _ in range(9):  # the model learns to stop
        run.reserve(5.0, "", pytest.fail)
    at.now, run.position.update = 52.0, 400
    assert 0.9 < run.progress() < 1
    run.end(pytest.fail)


def test_the_time_left_of_steps_counts_validation_apart(at: Clock) -> None:
    run = begun(at, 7.0, steps=1000)
    run.position.update = 150
    at.now = 7 + 15 + 4
    run.position.validation_seconds = 4.0  # one validation, at a tenth
    run.validated_at = 0.1
    run.scoring_seconds = 5.0
    assert run.seconds_left() == pytest.approx(0.1 * 850 + 9 * 4 + 5)


@pytest.mark.parametrize(
    ("keys", "warmup", "length"),
    [
        ({"steps": 50}, 10, "50 updates"),
        ({"steps": 2}, 1, "2 updates"),
        ({"epochs": 3, "accumulate": 2}, 11, "54 updates"),  # 35 batches an epoch
    ],
)
def test_a_run_that_would_end_inside_its_warm_up_gets_a_shorter_one(
    at: Clock, keys: dict[str, int], warmup: int, length: str
) -> None:
    said: list[str] = []
    run = begun(at, warmup=300, lr=0.5, **keys)
    run.position.epoch_batches = 35
    run.fit_warmup(said.append)
    assert run.position.warmup == warmup
    assert said == [
        f"train.warmup = 300 is longer than the run of {length}; "
        f"the learning rate rises for {warmup} updates instead"
    ]
    rate = learning_rate(run.config, 8, warmup, 0.0, run.position.warmup)
    assert rate == 0.5  # the peak of the recipe


def test_a_warm_up_with_the_papers_peak_keeps_the_peak() -> None:
    config = TrainConfig(steps=50)
    assert learning_rate(config, 512, 10, 0.0, warmup=10) == (512 * 4000) ** -0.5


@pytest.mark.parametrize("keys", [{"steps": 300}, {"steps": 5000}, {"epochs": 9}])
def test_a_run_that_outlasts_its_warm_up_is_left_alone(at: Clock, keys: dict[str, int]) -> None:
    run = begun(at, warmup=300, **keys)
    run.position.epoch_batches = 35
    run.fit_warmup(pytest.fail)
    assert run.position.warmup == 0


def test_the_warm_up_does_not_depend_on_where_a_run_was_resumed(at: Clock) -> None:
    # Epochs may differ in length, where sentences are segmented anew.
    for position in (Position(update=40, warmup=11), Position(update=40)):
        run = begun(at, position=position, warmup=300, epochs=3)
        run.position.epoch_batches = 4
        before = position.warmup
        run.fit_warmup(pytest.fail)
        assert run.position.warmup == before


def test_with_minutes_the_warm_up_is_fitted_once_the_pace_is_known(at: Clock) -> None:
    said: list[str] = []
    run = begun(at, 20.0, warmup=300, minutes=2)
    for update in range(5):
        run.position.update = update
        run.fit_warmup(pytest.fail)
        at.now += 0.4  # 250 updates fit into 100 seconds
    for update in range(5, 240):
        run.position.update = update
        run.fit_warmup(said.append)
        at.now += 0.4
    (line,) = said
    assert "the run of about 2" in line
    assert 45 <= run.position.warmup <= 52
    steady = begun(at, warmup=300, minutes=2)
    for update in range(300):
        steady.position.update = update
        steady.fit_warmup(pytest.fail)
        at.now += 0.3


def test_a_validation_that_takes_too_much_is_put_off(at: Clock) -> None:
    said: list[str] = []
    run = begun(at, 10.0, minutes=5)
    run.position.validation_seconds = run.validation_seconds = 4.0
    at.now = 60.0
    assert not run.validation_fits(said.append) and not run.validation_fits(said.append)
    assert said == ["validating less often, so that it takes at most 12% of the time"]
    at.now = 67.0
    assert run.validation_fits(pytest.fail)
    run.position.validation_seconds = 1000.0
    run.config = TrainConfig(steps=9)
    assert run.validation_fits(pytest.fail)  # a run in steps is a function of its recipe


def test_clock() -> None:
    assert [clock(s) for s in (0, 59.9, 60, 3725)] == ["0:00", "0:59", "1:00", "1:02:05"]
