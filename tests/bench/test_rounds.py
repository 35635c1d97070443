"""Rounds in turn: the time budget, the order, failures, medians and ratios."""

from collections.abc import Callable, Iterable
from itertools import islice
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.bench import rounds as module
from seq2see.bench.rounds import medians, percentile, ratios, rounds, turns


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass on a clock of the test's own."""
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def pass_time(seconds: float) -> None:
        clock[0] += seconds

    return pass_time


def count_rounds(seconds: float, durations: Iterable[float], wait: Callable[[float], None]) -> int:
    """Run rounds of the given durations within a budget; return how many ran."""
    count = 0
    remaining = iter(durations)
    for number in rounds(seconds):
        count += 1
        assert number == count
        wait(next(remaining))
    return count


@pytest.mark.parametrize(
    ("seconds", "count"),
    [(-5, 1), (0, 1), (19.9, 1), (20, 2), (29.9, 2), (30, 3), (100, 10)],
)
def test_rounds_run_while_another_fits(
    seconds: float, count: int, wait: Callable[[float], None]
) -> None:
    assert count_rounds(seconds, [10] * 20, wait) == count


def test_the_next_round_is_expected_to_take_the_mean_of_those_before(
    wait: Callable[[float], None],
) -> None:
    assert count_rounds(29, [2, 18, 5], wait) == 2  # 20 s spent, 10 s expected
    assert count_rounds(30, [2, 18, 5], wait) == 3  # 25 s spent, 8.3 s expected
    assert count_rounds(34, [2, 18, 5, 4], wait) == 4  # 29 s spent, 7.3 s expected


def test_the_budget_starts_with_the_first_round(wait: Callable[[float], None]) -> None:
    numbers = rounds(20)
    wait(1000)
    assert next(numbers) == 1
    wait(10)
    assert next(numbers) == 2
    wait(10)
    assert next(numbers, None) is None


def test_every_setting_has_its_turn_in_every_round() -> None:
    assert list(turns("abc", [1, 2])) == [
        (1, "a"),
        (1, "b"),
        (1, "c"),
        (2, "a"),
        (2, "b"),
        (2, "c"),
    ]
    assert list(turns("abc", [])) == [] and list(turns("", [1, 2])) == []


def test_even_rounds_can_go_backwards() -> None:
    order = list(turns("abc", [1, 2, 3], alternate=True))
    assert "".join(setting for _, setting in order) == "abccbaabc"
    assert [number for number, _ in order] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("alternate", [False, True])
def test_a_failed_setting_is_left_out_of_later_rounds(alternate: bool) -> None:
    failed: set[str] = set()
    ran = []
    for number, setting in turns("abc", [1, 2, 3], alternate=alternate, failed=failed):
        ran.append((number, setting))
        if (number, setting) in ((1, "b"), (2, "c")):
            failed.add(setting)
    second = [(2, "c"), (2, "a")] if alternate else [(2, "a"), (2, "c")]
    assert ran == [(1, "a"), (1, "b"), (1, "c"), *second, (3, "a")]


def test_rounds_end_when_every_setting_has_failed() -> None:
    failed: dict[str, str] = {}
    ran = []
    for _, setting in islice(turns("ab", rounds(1e9), failed=failed), 10):
        ran.append(setting)
        failed[setting] = "out of memory"
    assert ran == ["a", "b"]


def test_medians_are_taken_figure_by_figure() -> None:
    rows = [
        {"speed": 3.0, "memory": 10},
        {"speed": 1.0, "memory": 30},
        {"speed": 9.0, "memory": 20},
    ]
    assert medians(rows) == {"speed": 3.0, "memory": 20}
    assert medians(rows[:2]) == {"speed": 2.0, "memory": 20}


def test_ratios_are_those_of_the_same_round() -> None:
    assert ratios({1: 10.0, 2: 30.0, 4: 8.0}, {2: 10.0, 3: 1.0, 4: 16.0}) == [3.0, 0.5]
    assert ratios({1: 10.0}, {2: 10.0}) == []


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=1), st.floats(0.01, 100))
def test_a_slow_round_changes_no_ratio(pairs: list[tuple[float, float]], slower: float) -> None:
    """Of figures measured in the same round, whatever slows both down."""
    ours = {number: first for number, (first, _) in enumerate(pairs)}
    theirs = {number: second for number, (_, second) in enumerate(pairs)}
    disturbed = ratios(ours | {0: ours[0] * slower}, theirs | {0: theirs[0] * slower})
    assert disturbed == pytest.approx(ratios(ours, theirs))


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_percentiles_are_measured_values(values: list[float], share: int) -> None:
    value_at = percentile(values, share)
    assert value_at in values
    assert 100 * sum(value <= value_at for value in values) >= share * len(values)
    assert 100 * sum(value < value_at for value in values) < share * len(values)
