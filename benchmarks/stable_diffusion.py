"""Time of one step of Stable Diffusion 1.5's U-Net, with tokens merged by tomesd and by seq2see.

    python benchmarks/stable_diffusion.py --size 256 512 --rounds 3

The U-Net has the public configuration of Stable Diffusion 1.5 and random weights in float32: speed
does not depend on their values, and nothing is said of the quality of pictures. A step is one
prediction for a batch of two, as classifier-free guidance needs, at latent sizes of 32² and 64².
It runs with PyTorch's fused kernel (`AttnProcessor2_0` of diffusers) and with the open one
(`AttnProcessor`), untouched, with `tomesd.apply_patch(unet, ratio=0.5)` and with
`seq2see.merge_in(unet, ratio=0.5)`, each with its defaults.

All settings take turns in one process, every second round in reverse order; the figures are medians
over rounds, ratios compare times of the same round. Seconds by part come from an additional step
of each setting. diffusers and tomesd have an environment of their own, which is created on first
use (`peers/requirements/stable-diffusion.txt`, 1 GB). tomesd 0.1.3, its last version, works with
diffusers 0.42.1: it patches the transformer blocks by the name of their class. Needs 6 GB of
memory; on two quiet cores, two rounds take four minutes. Writes `results/stable-diffusion.json`.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from peers import venvs

from seq2see.bench.rounds import medians, ratios
from seq2see.scoring.card import machine

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
RATIO = 0.5  # of the tokens are merged into others
COARSEST = 64  # pixels of one position at the coarsest level of the U-Net

Row = dict[str, Any]


def work(job: Row) -> list[Row]:
    """Run the worker in its environment and return what it emits."""
    try:
        interpreter = venvs.ensure("stable-diffusion")
    except venvs.NotInstalled as error:
        raise SystemExit(f"the environment stable-diffusion {error}") from None
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "HF_HUB_OFFLINE": "1"}
    command = [str(interpreter), str(HERE / "stable_diffusion_worker.py"), json.dumps(job)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as worker:
        assert worker.stdout is not None
        rows = [json.loads(line) for line in worker.stdout]
    if worker.returncode == -signal.SIGKILL:
        raise SystemExit(
            "the worker was killed, probably for lack of memory; --size 256 needs less"
        )
    if worker.returncode:
        raise SystemExit(f"the worker failed with exit code {worker.returncode}")
    return rows


def summary(rows: list[Row]) -> list[Row]:
    """Return one row per size and setting: medians, speed-ups within rounds, seconds by part."""
    results: dict[tuple[int, str, str], Row] = {}
    for row in rows:
        key = (row["size"], row["kernel"], row["merging"])
        result = results.setdefault(key, dict(zip(("size", "kernel", "merging"), key, strict=True)))
        if "parts" in row:
            result["parts"] = row["parts"]
        else:
            result.setdefault("rounds", {})[row["round"]] = row["figures"]
    seconds = {
        key: {number: figures["seconds"] for number, figures in result["rounds"].items()}
        for key, result in results.items()
    }
    for (size, kernel, merging), result in results.items():
        own = seconds[size, kernel, merging]
        result |= medians(list(result["rounds"].values()))
        result["speedup"] = median(ratios(seconds[size, kernel, "none"], own))
        result["speedup_over_fused"] = median(ratios(seconds[size, "fused", "none"], own))
    return list(results.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, nargs="+", default=[256, 512], help="in pixels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "stable-diffusion.json")
    options = parser.parse_args()
    for size in options.size:
        if size < COARSEST or size % COARSEST:
            parser.error(f"--size {size} must be a multiple of {COARSEST}")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    load = os.getloadavg()[0]
    print("environment stable-diffusion …", file=sys.stderr, flush=True)
    about, *rows = work({"sizes": options.size, "rounds": options.rounds, "ratio": RATIO})
    result = {
        "model": "U-Net of Stable Diffusion 1.5, random weights",
        "ratio": RATIO,
        "rows": summary(rows),
        "machine": machine() | {"threads": about.pop("threads")},
        "load_before": load,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    options.out.write_text(json.dumps(about | result, indent=1) + "\n", encoding="utf-8")
    print(f"written: {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
