"""Cost of recurrence, convolution and attention by sequence length: table 1 of the paper, measured.

Attention Is All You Need, section 4.
"""

import math
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil
import torch

from seq2see import __version__
from seq2see.bench.attention_worker import KERNEL, Job, Measured
from seq2see.bench.process import run_worker
from seq2see.bench.rounds import medians
from seq2see.errors import InputError
from seq2see.scoring.card import machine

FITTED = 4  # growth is fitted from a quarter of the longest length on: below, fixed costs show
HELD = 3  # n × n matrices that attention with weights holds, forward and backward
ENVIRONMENT = {
    # glibc: keep freed memory for the next call instead of returning it to the operating system,
    # whose page faults would take more time than the layer. Other systems ignore these.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "KINETO_LOG_LEVEL": "99",  # silences the profiler
}


@dataclass(frozen=True)
class Theory:
    """A row of table 1, for length n, width d, kernel k and reach r, and its exponents of n."""

    operations: str  # per layer
    sequential: str  # operations that depend on each other
    path: str  # longest path between two positions
    time: int
    memory: int


THEORY = {
    "recurrent": Theory("n·d²", "n", "n", time=1, memory=1),
    "convolutional": Theory("k·n·d²", "1", "n/k, or log_k n if dilated", time=1, memory=1),
    "self_attention": Theory("n²·d", "1", "1", time=2, memory=2),
    "self_attention_fused": Theory("n²·d", "1", "1", time=2, memory=1),
    "window": Theory("r·n·d", "1", "n/r", time=1, memory=1),
}


@dataclass(frozen=True)
class Row:
    """A layer of one kind at one length: median times, peak memory, and counts."""

    kind: str
    length: int
    forward_ms: float  # without gradients
    training_ms: float  # forward and backward
    forward_mb: float  # peak of what the call allocates
    training_mb: float
    sequential: int  # steps of this layer that depend on each other
    path: int  # steps or layers from the first position to the last


@dataclass(frozen=True)
class Exponents:
    """Fitted p of n^p; `time` and `memory` are those of forward and backward."""

    time: float
    memory: float
    forward_time: float
    forward_memory: float


@dataclass(frozen=True)
class Growth:
    """Result of `bench attention`."""

    exponents: dict[str, Exponents]
    theory: dict[str, Theory]
    fitted_over: list[int]
    rows: list[Row]
    rounds: int
    settings: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]


def bench_attention(
    lengths: Sequence[int],
    *,
    width: int = 64,
    batch: int = 4,
    reach: int = 32,
    seconds: float = 60.0,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Growth:
    """Measure time and peak memory of every kind of layer at every length, and fit their growth."""
    lengths = sorted(set(lengths))
    if len(lengths) < 2:
        given = ", ".join(map(str, lengths))
        raise InputError(f"--lengths {given}: growth needs at least two different lengths")
    _check_memory(lengths[-1], batch)
    job = Job([*THEORY], lengths, width, batch, reach, seconds)
    measured = run(job, say)
    rows = [row(kind, length, reach, measured) for kind in THEORY for length in lengths]
    fitted_over = fitted(lengths)
    settings = asdict(job) | {"kernel": KERNEL}
    del settings["kinds"]
    return Growth(
        exponents={
            kind: exponents([row for row in rows if row.kind == kind], fitted_over)
            for kind in THEORY
        },
        theory=THEORY,
        fitted_over=fitted_over,
        rows=rows,
        rounds=len(measured[0].seconds),
        settings=settings,
        machine=machine(),
        versions={
            "seq2see": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    )


def read_lengths(text: str) -> list[int]:
    """Parse `16,32,64`."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part)):
            raise InputError(
                f"--lengths {text}: {part!r} must be a positive whole number;"
                " separate lengths by commas"
            )
    return [int(part) for part in parts]


def _check_memory(length: int, batch: int) -> None:
    needed = HELD * 4 * batch * length**2
    free = psutil.virtual_memory().available
    if needed > free:
        held = f"{HELD} × {batch} × {length}² numbers, {needed / 2**30:,.1f} GB"
        raise InputError(
            f"--lengths {length}: self-attention holds {held}; {free / 2**30:,.1f} GB are free"
        )


def run(job: Job, say: Callable[[str], None]) -> list[Measured]:
    """Run a job in a worker process."""
    figures = run_worker("seq2see.bench.attention_worker", asdict(job), ENVIRONMENT, say)
    return [Measured(**values) for values in figures]


def row(kind: str, length: int, reach: int, measured: Sequence[Measured]) -> Row:
    """Summarise the forward and the training pass of one layer at one length."""
    passes = {
        result.what: result for result in measured if (result.kind, result.length) == (kind, length)
    }
    by_round = zip(passes["forward"].seconds, passes["training"].seconds, strict=True)
    seconds = medians([{"forward": forward, "training": both} for forward, both in by_round])
    return Row(
        kind=kind,
        length=length,
        forward_ms=1000 * seconds["forward"],
        training_ms=1000 * seconds["training"],
        forward_mb=passes["forward"].peak_bytes / 2**20,
        training_mb=passes["training"].peak_bytes / 2**20,
        sequential=length if kind == "recurrent" else 1,
        path=path(kind, length, reach),
    )


def path(kind: str, length: int, reach: int) -> int:
    """Count the steps, or stacked layers, that connect the first position with the last."""
    if kind == "recurrent":
        return length
    if kind in ("self_attention", "self_attention_fused"):
        return 1
    side = KERNEL // 2 if kind == "convolutional" else reach
    return max(1, math.ceil((length - 1) / side))


def fitted(lengths: Sequence[int]) -> list[int]:
    """Return the lengths to fit growth over: the longest, where the leading term dominates."""
    longest = [length for length in lengths if FITTED * length >= lengths[-1]]
    return longest if len(longest) > 1 else list(lengths[-2:])


def exponents(rows: Sequence[Row], lengths: Sequence[int]) -> Exponents:
    """Fit log-log lines by least squares; their slopes are the exponents."""
    chosen = [row for row in rows if row.length in lengths]
    xs = [math.log(row.length) for row in chosen]

    def slope(values: Sequence[float]) -> float:
        return statistics.linear_regression(xs, [math.log(value) for value in values]).slope

    return Exponents(
        time=slope([row.training_ms for row in chosen]),
        memory=slope([row.training_mb for row in chosen]),
        forward_time=slope([row.forward_ms for row in chosen]),
        forward_memory=slope([row.forward_mb for row in chosen]),
    )
