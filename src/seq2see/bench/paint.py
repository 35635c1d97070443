"""Speed, memory and quality of a trained diffusion model as its attention merges positions."""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from seq2see.bench.memory import peak_bytes
from seq2see.bench.paint_parts import TimeByPart, time_by_part
from seq2see.bench.paint_quality import Quality, change
from seq2see.bench.paint_workload import Setting, Workload
from seq2see.bench.rounds import medians, ratios, rounds, turns
from seq2see.decoding.denoising import Denoising
from seq2see.scoring.card import machine
from seq2see.tasks.painter import Painter

MEMORY_STEPS = 2  # the second step still holds the matching of the first


@dataclass(frozen=True)
class Pass:
    """One round of one setting."""

    seconds_per_picture: float
    one_picture_seconds: float


@dataclass(frozen=True, kw_only=True)
class Row(Setting):
    """Figures of one setting: times are medians over the rounds, the rest does not vary.

    A speed-up is the median, over the rounds, of the untouched model's time at the same size
    divided by this one's. There is no quality at sizes that the model was not trained for.
    """

    seconds_per_picture: float  # of `count` painted in one call
    speedup: float
    one_picture_seconds: float  # of one painted alone
    one_picture_speedup: float
    peak_memory_mb: float  # beside the weights, for one batch on one thread
    accuracy: float | None = None
    attributes: dict[str, Any] | None = None
    frechet_distance: float | None = None
    became_wrong: int | None = None  # prompts that the untouched model paints right
    became_right: int | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Frontier:
    """Result of `bench paint`."""

    own_size: int
    min_tokens: int  # grids with fewer positions are left alone
    count: int  # pictures painted in one call
    sampling: Denoising
    rounds: int
    attention_share: float  # of the untouched model's time, at its own size, with fused attention
    quality: dict[str, Any] | None  # test set, number of pictures, judge and features
    rows: list[Row]  # by size, the model's own first; the untouched model first at each
    parts: list[TimeByPart]
    machine: dict[str, Any]


def bench_paint(
    workload: Workload,
    requested: Sequence[Setting],
    seconds: float = 300.0,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Frontier:
    """Measure the settings in rounds, then memory, time by part and quality of each.

    The settings are as `settings` returns them: the untouched model comes first at each size. It
    uses fused attention, as it does wherever no weights are needed.
    """
    painters = {setting: workload.painter(setting) for setting in requested}
    passes: dict[Setting, dict[int, Pass]] = {setting: {} for setting in requested}
    for number, setting in turns(requested, rounds(seconds), alternate=True):
        say(f"round {number} · {setting}")
        passes[setting][number] = _time(painters[setting], workload)
    rows = [_row(setting, passes, painters[setting], workload) for setting in requested]
    parts: list[TimeByPart] = []
    for setting in requested:
        say(f"time by part · {setting}")
        parts.append(time_by_part(workload, setting))
        if setting == setting.untouched:
            parts.append(time_by_part(workload, setting, fused=False))
    own = Setting(workload.own_size)
    return Frontier(
        own_size=workload.own_size,
        min_tokens=workload.min_tokens,
        count=len(workload.prompts),
        sampling=workload.sampling,
        rounds=len(passes[own]),
        attention_share=parts[0].attention,
        quality=_about(workload),
        rows=_with_quality(rows, workload, say),
        parts=parts,
        machine=machine(),
    )


def _time(painter: Painter, workload: Workload) -> Pass:
    """Time a call that paints all pictures, and one that paints a single one."""
    prompts = workload.prompts
    seeds = workload.seeds
    spent = []
    for count in (len(prompts), 1):
        paint = partial(painter.paint, prompts[:count], seeds[:count])
        paint(replace(workload.sampling, steps=1))  # to warm up
        began = time.perf_counter()
        paint(workload.sampling)
        spent.append((time.perf_counter() - began) / count)
    return Pass(*spent)


def _row(
    setting: Setting,
    passes: dict[Setting, dict[int, Pass]],
    painter: Painter,
    workload: Workload,
) -> Row:
    own = {number: asdict(timed) for number, timed in passes[setting].items()}
    untouched = {number: asdict(timed) for number, timed in passes[setting.untouched].items()}
    middle = medians([*own.values()])

    def speedup(figure: str) -> float:
        before = {number: timed[figure] for number, timed in untouched.items()}
        after = {number: timed[figure] for number, timed in own.items()}
        return statistics.median(ratios(before, after))

    few = replace(workload.sampling, steps=MEMORY_STEPS)
    paint = partial(painter.paint, workload.prompts, workload.seeds, few)
    return Row(
        **asdict(setting),
        seconds_per_picture=middle["seconds_per_picture"],
        speedup=speedup("seconds_per_picture"),
        one_picture_seconds=middle["one_picture_seconds"],
        one_picture_speedup=speedup("one_picture_seconds"),
        peak_memory_mb=peak_bytes(paint) / 2**20,
    )


def _about(workload: Workload) -> dict[str, Any] | None:
    test = workload.test
    if test is None:
        return None
    return {
        "test": test.name,
        "pictures": len(test.prompts),
        "judge": test.judge,
        "frechet_features": test.features,
    }


def _with_quality(rows: Sequence[Row], workload: Workload, say: Callable[[str], None]) -> list[Row]:
    """Add the quality of the settings at the model's own size, from the same prompts and seeds."""
    first: Quality | None = None
    measured = []
    for row in rows:
        if workload.test is None or row.size != workload.own_size:
            measured.append(row)
            continue
        say(f"quality · {row}")
        quality = workload.test.run(workload.painter(row), workload.sampling)
        row = replace(
            row,
            accuracy=quality.accuracy,
            attributes=quality.attributes,
            frechet_distance=quality.frechet_distance,
        )
        if first is None:
            first = quality
        else:
            row = replace(row, **asdict(change(first.right, quality.right)))
        measured.append(row)
    return measured
