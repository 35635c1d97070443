"""Speed of threads and processes: `python benchmarks/distributed.py speed`."""

import statistics
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from distributed_jobs import say, train
from distributed_worker import Job

from seq2see.bench.rounds import medians, ratios, turns

WARM_UP = 3  # updates


@dataclass(frozen=True)
class Setting:
    """Processes or worker threads that share out the passes of an update."""

    name: str
    processes: int
    threads: int = 1
    communicates: bool = True
    wrapped: bool = False  # in DDP, even one process alone


SILENT = {"communicates": False}
SETTINGS = (
    Setting("1 thread", 1),
    Setting("1 process, DDP", 1, wrapped=True),
    Setting("2 threads", 1, threads=2),
    Setting("2 processes", 2),
    Setting("2 processes, silent", 2, communicates=False),
    Setting("4 processes", 4),
    Setting("4 processes, silent", 4, communicates=False),
)
# Updates of two batches have four passes, one for each of four processes.
SIZES = {
    "small": ("multi30k", ["train.accumulate=2", "train.steps=60"]),
    "base": ("multi30k-annotated", ["train.accumulate=2", "train.steps=9"]),
}


def measure(size: str, setting: Setting, folder: Path) -> dict[str, float]:
    """Time the updates of one run, without the first ones."""
    recipe, settings = SIZES[size]
    run = Path(tempfile.mkdtemp(dir=folder))
    job = Job(
        recipe,
        [*settings, "train.checkpoint_every=1000000"],
        str(run),
        str(folder / f"{size}-data"),
        communicates=setting.communicates,
        wrapped=setting.wrapped,
    )
    ranks = train(job, setting.processes, setting.threads)
    times = np.diff(ranks[0]["times"])[WARM_UP - 1 :]
    tokens_per_update = ranks[0]["tokens"] / len(ranks[0]["losses"])
    return {
        "seconds_per_update": float(np.median(times)),
        "target_tokens_per_update": tokens_per_update,
        "parameters": ranks[0]["parameters"],
    }


def speed(rounds: int) -> dict[str, Any]:
    """Time threads and processes in turn."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in SIZES:
            measured: dict[Setting, dict[int, dict[str, float]]] = {s: {} for s in SETTINGS}
            for number, setting in turns(SETTINGS, range(1, rounds + 1), alternate=True):
                measured[setting][number] = measure(size, setting, folder)
                say(f"{size}, {setting.name}: {measured[setting][number]}")
            rows += summary(size, measured)
    return {"rounds": rounds, "rows": rows}


def summary(
    size: str, measured: dict[Setting, dict[int, dict[str, float]]]
) -> list[dict[str, Any]]:
    """Seconds of each round and ratios to two worker threads, to one thread and to silence.

    The last is the time without communication, for the same number of processes.
    """
    seconds = {
        setting: {number: row["seconds_per_update"] for number, row in by_round.items()}
        for setting, by_round in measured.items()
    }
    (one,) = (s for s in measured if s.processes == s.threads == 1 and not s.wrapped)
    (two,) = (s for s in measured if s.threads == 2)
    rows = []
    for setting, by_round in measured.items():
        silent = next((s for s in measured if s == replace(setting, name=s.name, **SILENT)), None)
        row: dict[str, Any] = {"size": size, **asdict(setting), **medians([*by_round.values()])}
        row["faster_than_2_threads"] = statistics.median(ratios(seconds[two], seconds[setting]))
        row["faster_than_1_thread"] = statistics.median(ratios(seconds[one], seconds[setting]))
        if silent is not None and setting.communicates:
            without = statistics.median(ratios(seconds[silent], seconds[setting]))
            row["communication_share"] = 1 - without
        rows.append(row)
    return rows
