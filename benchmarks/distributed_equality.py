"""Equality of several processes with one: `python benchmarks/distributed.py equality`."""

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distributed_jobs import CHECKPOINT, EQUAL, say, train
from distributed_worker import Job

from seq2see.training import checkpoint

UPDATES = 200
# Processes of runs that are killed, before and after.
KILLED = {"captions": ((4, 2), (2, 4), (2, 1), (2, 2)), "multi30k": ((4, 2), (2, 2))}
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


@dataclass(frozen=True)
class Run:
    """A training to compare with that of one process."""

    recipe: str
    dtype: str
    processes: int
    shard: str = "none"
    before: int | None = None  # the number of processes that were killed on the way
    backwards: bool = False  # whether passes are summed in the opposite order

    def name(self) -> str:
        started = f"{self.before}-then-" if self.before else ""
        order = "-backwards" if self.backwards else ""
        return f"{self.recipe}-{self.dtype}-{started}{self.processes}-{self.shard}{order}"


def runs_to_compare() -> Iterator[Run]:
    """Yield all runs; those of one process are the measure.

    A process alone that sums backwards shows how much of a difference is rounding.
    """
    for recipe in EQUAL:
        for dtype in TOLERANCE:
            yield Run(recipe, dtype, processes=1, backwards=True)
            for processes in (2, 4):
                yield Run(recipe, dtype, processes)
                yield Run(recipe, dtype, processes, "full")
            for before, after in KILLED[recipe]:
                yield Run(recipe, dtype, after, before=before)


def job_of(run: Run, folder: Path, die_at: int | None = None) -> Job:
    settings = [f"train.steps={UPDATES}", f"train.checkpoint_every={CHECKPOINT}"]
    settings += [f"train.shard={run.shard}", *EQUAL[run.recipe]]
    own, prepared = str(folder / run.name()), str(folder / f"{run.recipe}-data")
    return Job(
        run.recipe, settings, own, prepared, run.dtype, die_at=die_at, backwards=run.backwards
    )


def compare(run: Run, one: dict[str, Any], folder: Path, chance: random.Random) -> dict[str, Any]:
    """Train as described; compare losses and examples with those of one process."""
    row: dict[str, Any] = asdict(run)
    if run.before is not None:
        row["killed_at"] = chance.randrange(CHECKPOINT + 1, UPDATES)
        train(job_of(run, folder, die_at=row["killed_at"]), run.before, killed=True)
    ranks = train(job_of(run, folder), run.processes)
    first = row["first_update"] = ranks[0]["first"] + 1
    losses = np.array([rank["losses"] for rank in ranks])
    expected = np.array(one["losses"][first - 1 :])
    differences = (np.abs(losses - expected) / expected).max(0)  # by update
    above = np.flatnonzero(differences > TOLERANCE[run.dtype])
    row["largest_difference"] = float(differences.max())
    row["within_tolerance"] = int(above[0]) if len(above) else len(differences)  # updates
    row["same_examples"] = all(
        sorted(line for rank in ranks for line in rank["lines"][update]) == sorted(lines)
        for update, lines in enumerate(one["lines"][first - 1 :])
    )
    undisturbed = folder / Run(run.recipe, run.dtype, run.processes, run.shard).name()
    if run.before == run.processes:
        row["same_bits"] = same_bits(Path(job_of(run, folder).folder), undisturbed)
    return row


def same_bits(first: Path, second: Path) -> bool:
    """Whether the last checkpoints of two runs hold the same bits."""
    ends = [
        checkpoint.load(checkpoint.saved_in(run / "checkpoints")[-1]) for run in (first, second)
    ]
    groups, others = (end.groups for end in ends)
    return all(
        torch.equal(tensor, others[group][name])
        for group, tensors in groups.items()
        for name, tensor in tensors.items()
    )


def equality() -> dict[str, Any]:
    """Compare all runs with one process."""
    rows = []
    chance = random.Random("killed at")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone: dict[tuple[str, str], dict[str, Any]] = {}
        for run in runs_to_compare():
            key = run.recipe, run.dtype
            if key not in alone:
                (alone[key],) = train(job_of(Run(*key, processes=1), folder), 1)
            row = compare(run, alone[key], folder, chance)
            rows.append(row)
            say(json.dumps(row))
    return {"updates": UPDATES, "tolerance": TOLERANCE, "rows": rows}


def unequal(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the runs that differ from one process by more than rounding.

    Adam amplifies it: the difference of one process that sums backwards, twice over, is allowed.
    """
    rounding = {
        (row["recipe"], row["dtype"]): row["largest_difference"] for row in rows if row["backwards"]
    }
    return [
        row
        for row in rows
        if row["largest_difference"]
        > max(TOLERANCE[row["dtype"]], 2 * rounding[row["recipe"], row["dtype"]])
        or not row["same_examples"]
        or row.get("same_bits") is False
    ]
