"""Several processes against one: equal losses, killed processes, and speed.

    python benchmarks/distributed.py equality
    python benchmarks/distributed.py kills
    python benchmarks/distributed.py speed

- equality: 200 updates with 1, 2 and 4 processes, DDP and FSDP2, float32 and float64, dropout on;
  and runs in which all processes are killed at a random update and resumed with another number, or
  with the same.
- kills: `seq2see train` under torchrun, whose processes are killed at random; the weights at the
  end are compared with those of an undisturbed run.
- speed: worker threads against processes, in turn, the share of communication, and the cost of DDP
  for one process. Nothing else may run on the machine.

Each writes `results/distributed-NAME.json`.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import safetensors.torch
import torch
from distributed_worker import Job

from seq2see.bench.rounds import medians, ratios, turns
from seq2see.scoring.card import machine
from seq2see.training import checkpoint

RESULTS = Path(__file__).parent / "results"
WORKER = Path(__file__).with_name("distributed_worker.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")

UPDATES = 200
CHECKPOINT = 20  # updates between two checkpoints, of runs that are killed
# Updates of two batches have four passes, one for each of four processes.
EQUAL = {
    "captions": ["train.accumulate=2", "model.dropout=0.2", "data.limit=20000"],
    "multi30k": ["train.accumulate=2", "model.width=128", "train.batch_tokens=512"],
}
# Processes of runs that are killed, before and after.
KILLED = {"captions": ((4, 2), (2, 4), (2, 1), (2, 2)), "multi30k": ((4, 2), (2, 2))}
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}
WARM_UP = 3  # updates


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def train(job: Job, processes: int, threads: int = 1, killed: bool = False) -> list[dict[str, Any]]:
    """Run the worker, by torchrun if there are several processes; return the notes of each rank."""
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    start = (*TORCHRUN, str(processes)) if processes > 1 else (sys.executable,)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [*start, WORKER, path], env=environment, capture_output=True, text=True, check=False
    )
    if killed != bool(done.returncode):
        raise SystemExit(f"{job}: ended with code {done.returncode}:\n{done.stderr}")
    notes = [folder / f"rank-{rank}.json" for rank in range(processes)]
    return [] if killed else [json.loads(note.read_text(encoding="utf-8")) for note in notes]


# Equality


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


# Kills


@dataclass(frozen=True)
class Disturbed:
    """Runs of a number of processes, each of which is disturbed by some kills."""

    processes: int
    runs: int
    kills: int


DISTURBED = (Disturbed(2, runs=3, kills=4), Disturbed(4, runs=2, kills=4))
DISTURBED_UPDATES = 240
KILL = [
    *EQUAL["captions"],
    f"train.steps={DISTURBED_UPDATES}",
    f"train.checkpoint_every={CHECKPOINT}",
    "train.validate_sentences=8",
]


def start(processes: int, out: Path, restarts: int) -> subprocess.Popen[bytes]:
    settings = [part for setting in KILL for part in ("--set", setting)]
    train = ("-m", "seq2see", "train", "captions", "--out", out, *settings)
    command = (*TORCHRUN, str(processes), "--max-restarts", str(restarts), *train)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with out.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def logged_updates(out: Path) -> int:
    """Count the updates that a run has logged, those repeated after a kill included."""
    log = out / "log.jsonl"
    return log.read_text(encoding="utf-8").count('"event": "update"') if log.exists() else 0


def ranks_of(torchrun: subprocess.Popen[bytes]) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(torchrun.pid).children()
    return [child for child in children if "seq2see" in child.cmdline()]


def disturb(setting: Disturbed, out: Path, chance: random.Random) -> list[dict[str, Any]]:
    """Train while processes are killed, each time after some more updates; return the kills."""
    torchrun = start(setting.processes, out, setting.kills)
    kills: list[dict[str, Any]] = []
    for _ in range(setting.kills):
        before = logged_updates(out)
        while logged_updates(out) <= before and torchrun.poll() is None:
            time.sleep(0.05)
        time.sleep(chance.uniform(0.0, 3.0))
        alive = ranks_of(torchrun)
        if not alive:
            break  # the run was over before
        victim = chance.choice(alive)
        rank = int(victim.environ()["RANK"])
        victim.send_signal(signal.SIGKILL)
        kills.append({"rank": rank, "updates_logged": logged_updates(out)})
    if torchrun.wait():
        raise SystemExit(out.with_suffix(".log").read_text(encoding="utf-8"))
    return kills


def kills() -> dict[str, Any]:
    """Kill processes of runs under torchrun; compare the weights with undisturbed ones."""
    rows = []
    chance = random.Random("kills")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for setting in DISTURBED:
            whole = folder / f"whole-{setting.processes}"
            if start(setting.processes, whole, restarts=0).wait():
                raise SystemExit(whole.with_suffix(".log").read_text(encoding="utf-8"))
            expected = safetensors.torch.load_file(whole / "model.safetensors")
            for number in range(setting.runs):
                out = folder / f"killed-{setting.processes}-{number}"
                killed = disturb(setting, out, chance)
                weights = safetensors.torch.load_file(out / "model.safetensors")
                same = all(torch.equal(weights[key], expected[key]) for key in expected)
                rows.append({"processes": setting.processes, "kills": killed, "same_bits": same})
                say(json.dumps(rows[-1]))
    return {"updates": DISTURBED_UPDATES, "checkpoint_every": CHECKPOINT, "rows": rows}


# Speed


@dataclass(frozen=True)
class Setting:
    """Processes or worker threads that share out the passes of an update."""

    name: str
    processes: int
    threads: int = 1
    communicates: bool = True
    wrapped: bool = False  # in DDP, even one process alone


SETTINGS = (
    Setting("1 thread", 1),
    Setting("1 process, DDP", 1, wrapped=True),
    Setting("2 threads", 1, threads=2),
    Setting("2 processes", 2),
    Setting("2 processes, silent", 2, communicates=False),
    Setting("4 processes", 4),
    Setting("4 processes, silent", 4, communicates=False),
)
SIZES = {
    "small": ("multi30k", ["train.accumulate=2", "train.steps=60"]),
    "base": ("multi30k-annotated", ["train.steps=7"]),
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
    """Medians over the rounds, and the ratio of each round to two worker threads."""
    seconds = {
        setting: {number: row["seconds_per_update"] for number, row in by_round.items()}
        for setting, by_round in measured.items()
    }
    (threads,) = (setting for setting in measured if setting.threads == 2)
    return [
        {"size": size, **asdict(setting), **medians(list(by_round.values()))}
        | {"faster_than_2_threads": ratios(seconds[threads], seconds[setting])}
        for setting, by_round in measured.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["equality", "kills", "speed"])
    parser.add_argument("--rounds", type=int, default=3, help="of speed")
    options = parser.parse_args()
    measures = {"equality": equality, "kills": kills, "speed": lambda: speed(options.rounds)}
    result = {"machine": machine(), **measures[options.what]()}
    path = RESULTS / f"distributed-{options.what}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.what == "equality" and (different := unequal(result["rows"])):
        raise SystemExit(f"differ from one process: {different}")
    if options.what == "kills" and not all(row["same_bits"] for row in result["rows"]):
        raise SystemExit("a killed run ended with other weights")


if __name__ == "__main__":
    main()
