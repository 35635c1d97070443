"""What recurrence, convolution and attention cost as sequences grow: table 1 of the paper, measured."""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil
import torch

from seq2see import __version__
from seq2see.bench.attention_worker import KERNEL, Job, Measured
from seq2see.errors import InputError, WorkError
from seq2see.scoring.card import machine

FITTED = (
    4  # growth is fitted over lengths down to a quarter of the longest: below, other costs show
)
HELD = (
    3  # matrices of n × n numbers that attention with weights holds at once, forward and backward
)
ENVIRONMENT = {
    # Memory that was given back is kept for the next call (glibc); other systems do not know these.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "KINETO_LOG_LEVEL": "99",  # the profiler has nothing to tell
}


@dataclass(frozen=True)
class Theory:
    """A line of table 1, for length n, width d, kernel k and reach r; and the exponents of n that follow."""

    operations: str  # of a layer
    sequential: str  # operations that wait for each other
    path: str  # the longest way between two positions
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
    """A layer of one kind at one length: medians of time, peaks of memory, and counts."""

    kind: str
    length: int
    forward_ms: float  # without gradients
    training_ms: float  # forward and backward
    forward_mb: float  # allocated by the call at once
    training_mb: float
    sequential: int  # steps of this layer that wait for each other
    path: int  # steps or layers from the first position to the last


@dataclass(frozen=True)
class Exponents:
    """p of n^p, fitted; `time` and `memory` are those of forward and backward."""

    time: float
    memory: float
    forward_time: float
    forward_memory: float


@dataclass(frozen=True)
class Growth:
    """What `bench attention` found."""

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
    """Time and peak memory of every kind of layer at every length, and how both grow."""
    lengths = sorted(set(lengths))
    if len(lengths) < 2:
        raise InputError(
            f"--lengths {', '.join(map(str, lengths))}: growth needs two different lengths or more"
        )
    _check_memory(lengths[-1], batch)
    job = Job([*THEORY], lengths, width, batch, reach, seconds)
    measured = run(job, say)
    rows = [row(kind, length, reach, measured) for kind in THEORY for length in lengths]
    fitted_over = fitted(lengths)
    return Growth(
        exponents={
            kind: exponents([each for each in rows if each.kind == kind], fitted_over)
            for kind in THEORY
        },
        theory=THEORY,
        fitted_over=fitted_over,
        rows=rows,
        rounds=len(measured[0].seconds),
        settings={key: value for key, value in asdict(job).items() if key != "kinds"}
        | {"kernel": KERNEL},
        machine=machine(),
        versions={
            "seq2see": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    )


def read_lengths(text: str) -> list[int]:
    """`16,32,64` as numbers."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part)):
            raise InputError(
                f"--lengths {text}: {part!r} must be a whole number from 1 on, with commas between"
            )
    return [int(part) for part in parts]


def _check_memory(length: int, batch: int) -> None:
    needed, free = HELD * 4 * batch * length**2, psutil.virtual_memory().available
    if needed > free:
        held = f"{HELD} × {batch} × {length}² numbers, {needed / 2**30:,.1f} GB"
        raise InputError(
            f"--lengths {length}: self-attention holds {held}; {free / 2**30:,.1f} GB are free"
        )


def run(job: Job, say: Callable[[str], None]) -> list[Measured]:
    """Hand the job to a new process, pass on what it says, and wait for its figures."""
    # Like the command itself, the worker does not import from the working folder (-P).
    command = [sys.executable, "-P", "-m", "seq2see.bench.attention_worker"]
    said = "it said nothing"
    with tempfile.TemporaryFile() as figures:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=figures,
            stderr=subprocess.PIPE,
            env=os.environ | ENVIRONMENT,
        ) as worker:
            assert worker.stdin is not None and worker.stderr is not None
            worker.stdin.write(json.dumps(asdict(job)).encode())
            worker.stdin.close()
            for line in worker.stderr:
                said = line.decode(errors="replace").strip()
                say(said)
        if worker.returncode:
            raise WorkError(f"the worker ended with code {worker.returncode}: {said}")
        figures.seek(0)
        return [Measured(**values) for values in json.load(figures)]


def row(kind: str, length: int, reach: int, measured: Sequence[Measured]) -> Row:
    """The medians and peaks of one layer at one length."""
    found = {each.what: each for each in measured if (each.kind, each.length) == (kind, length)}
    ms = {what: 1000 * statistics.median(each.seconds) for what, each in found.items()}
    mb = {what: each.peak_bytes / 2**20 for what, each in found.items()}
    return Row(
        kind=kind,
        length=length,
        forward_ms=ms["forward"],
        training_ms=ms["training"],
        forward_mb=mb["forward"],
        training_mb=mb["training"],
        sequential=length if kind == "recurrent" else 1,
        path=path(kind, length, reach),
    )


def path(kind: str, length: int, reach: int) -> int:
    """Steps, or layers on top of each other, until the last position can know of the first."""
    if kind == "recurrent":
        return length
    if kind in ("self_attention", "self_attention_fused"):
        return 1
    side = KERNEL // 2 if kind == "convolutional" else reach
    return max(1, math.ceil((length - 1) / side))


def fitted(lengths: Sequence[int]) -> list[int]:
    """The lengths that growth is fitted over: the longest, where what grows fastest has the most weight."""
    long = [length for length in lengths if FITTED * length >= lengths[-1]]
    return long if len(long) > 1 else list(lengths[-2:])


def exponents(rows: Sequence[Row], lengths: Sequence[int]) -> Exponents:
    """Lines through the points in log-log, by least squares."""
    chosen = [each for each in rows if each.length in lengths]
    xs = [math.log(each.length) for each in chosen]

    def slope(values: Sequence[float]) -> float:
        return statistics.linear_regression(xs, [math.log(value) for value in values]).slope

    return Exponents(
        time=slope([each.training_ms for each in chosen]),
        memory=slope([each.training_mb for each in chosen]),
        forward_time=slope([each.forward_ms for each in chosen]),
        forward_memory=slope([each.forward_mb for each in chosen]),
    )
