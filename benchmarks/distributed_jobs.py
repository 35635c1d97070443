"""Starts the processes of `distributed.py`."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distributed_worker import Job

WORKER = Path(__file__).with_name("distributed_worker.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
CHECKPOINT = 20  # updates between two checkpoints, of runs that are killed
# Updates of two batches have four passes, one for each of four processes. Small models do: what is
# compared is the order of training, not its speed.
SMALL = ("train.accumulate=2", "model.width=64", "train.batch_tokens=512")
EQUAL = {
    "captions": [*SMALL, "model.dropout=0.2", "data.limit=20000"],
    "multi30k": [*SMALL],
}


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
