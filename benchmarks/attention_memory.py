"""How much memory additive attention takes, forward and backward.

    python benchmarks/attention_memory.py

A network of T × S × d numbers stands behind the scores of a sentence: 2 GB for 8 sentences of 512 tokens at d = 256.
Each length is measured in a process of its own, as the highest resident memory minus that before. Prints a table and
writes `results/attention_memory.json`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from seq2see.layers.attention import attend
from seq2see.layers.scores import Additive
from seq2see.scoring.card import machine

HERE = Path(__file__).parent
LENGTHS = (64, 128, 256, 512)


def highest_mb() -> float:
    """Of this process: `ru_maxrss` would begin with what its parent had."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmHWM; this needs Linux")


def measured(batch: int, length: int, size: int) -> dict[str, float]:
    query, key, value = (torch.randn(batch, length, size, requires_grad=True) for _ in range(3))
    score = Additive(size, size, size)
    small = [x[:1, :2] for x in (query, key, value)]
    attend(*small, score=score)[
        0
    ].sum().backward()  # what torch loads on first use is not what is asked for
    before = highest_mb()
    output, _ = attend(query, key, value, score=score)
    forward = highest_mb()
    output.sum().backward()
    return {"forward_mb": forward - before, "training_mb": highest_mb() - before}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument(
        "--size", type=int, default=256, help="of queries, keys and the network between them"
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "attention_memory.json")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measured(arguments.batch, arguments.only, arguments.size)))
        return
    rows: list[dict[str, Any]] = []
    print(f"{'length':>6}  {'at once MB':>10}  {'forward MB':>10}  {'training MB':>11}")
    for length in arguments.lengths:
        sizes = ["--batch", str(arguments.batch), "--size", str(arguments.size)]
        command = [sys.executable, __file__, *sizes, "--only", str(length)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        at_once = arguments.batch * length**2 * arguments.size * 4 / 2**20
        rows.append({"length": length, "at_once_mb": at_once, **found})
        print(
            f"{length:6}  {at_once:10,.0f}  {found['forward_mb']:10,.0f}  {found['training_mb']:11,.0f}",
            flush=True,
        )
    result = {
        "batch": arguments.batch,
        "size": arguments.size,
        "rows": rows,
        "machine": machine(),
        "versions": {"torch": torch.__version__},
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
