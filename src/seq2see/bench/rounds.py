"""Rounds in turn: measure every setting once per round, then take medians and ratios over rounds.

A disturbance of the machine spoils one round of every setting instead of all rounds of one: medians
do not show it, and ratios of figures from the same round cancel it.
"""

import math
import statistics
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Setting = TypeVar("Setting")


def rounds(seconds: float) -> Iterator[int]:
    """Count rounds from 1 for as long as another one, of the mean duration so far, fits the budget.

    The first round always runs.
    """
    started = time.perf_counter()
    done = 0
    while not done or (time.perf_counter() - started) * (done + 1) / done <= seconds:
        done += 1
        yield done


def turns(
    settings: Sequence[Setting],
    rounds: Iterable[int],
    *,
    alternate: bool = False,
    failed: Container[Setting] = (),
) -> Iterator[tuple[int, Setting]]:
    """Yield (round, setting) for every setting of every round; `alternate` reverses even rounds.

    Settings that the caller adds to `failed` are skipped from the next round on; once all have
    failed, the rounds end.
    """
    for number in rounds:
        remaining = [setting for setting in settings if setting not in failed]
        if not remaining:
            return
        if alternate and number % 2 == 0:
            remaining.reverse()
        for setting in remaining:
            yield number, setting


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure, given one row of figures per round."""
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def percentile(values: Sequence[float], share: int) -> float:
    """Return the least value that at least `share` percent of all values do not exceed."""
    return sorted(values)[math.ceil(len(values) * share / 100) - 1]


def ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Divide figures of the same round, {round: figure}; rounds that one side lacks are skipped."""
    return [figure / theirs[number] for number, figure in ours.items() if number in theirs]
