"""Training whose processes are killed: `python benchmarks/distributed.py kills`."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import safetensors.torch
import torch
from distributed_jobs import CHECKPOINT, EQUAL, TORCHRUN, say


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
