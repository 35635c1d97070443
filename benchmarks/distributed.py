"""Several processes against one: equal losses, killed processes, and speed.

    python benchmarks/distributed.py equality
    python benchmarks/distributed.py kills
    python benchmarks/distributed.py speed
    python benchmarks/distributed.py large

- equality: 200 updates with 1, 2 and 4 processes, DDP and FSDP2, float32 and float64, dropout on;
  and runs in which all processes are killed at a random update and resumed with another number, or
  with the same.
- kills: `seq2see train` under torchrun, whose processes are killed at random; the weights at the
  end are compared with those of an undisturbed run.
- speed: worker threads against processes, in turn, the share of communication, and the cost of DDP
  for one process. Nothing else may run on the machine.
- large: the time of the paper's models on one core, alone, too.

Each writes `results/distributed-NAME.json`.
"""

import argparse
import json
from pathlib import Path

from distributed_equality import equality, unequal
from distributed_kills import kills
from distributed_large import large
from distributed_speed import speed

from seq2see.scoring.card import machine

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["equality", "kills", "speed", "large"])
    parser.add_argument("--rounds", type=int, default=3, help="of speed and large")
    options = parser.parse_args()
    measures = {
        "equality": equality,
        "kills": kills,
        "speed": lambda: speed(options.rounds),
        "large": lambda: large(options.rounds),
    }
    result = {"machine": machine(), **measures[options.what]()}
    path = RESULTS / f"distributed-{options.what}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.what == "equality" and (different := unequal(result["rows"])):
        raise SystemExit(f"differ from one process: {different}")
    if options.what == "kills" and not all(row["same_bits"] for row in result["rows"]):
        raise SystemExit("a killed run ended with other weights")


if __name__ == "__main__":
    main()
