"""What our attention costs beside torch's own kernel.

    python benchmarks/attention.py

Times `attend` and `torch.nn.functional.scaled_dot_product_attention` on the same queries, keys and values, in pairs
whose order alternates, so that a slow moment of the machine hits both. Prints the medians and writes
`results/attention.json`. To be believed it needs a machine that does nothing else.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seq2see.layers.attention import attend
from seq2see.scoring.card import machine

HERE = Path(__file__).parent
LENGTHS = (128, 256, 512, 1024)


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def forward_of(look: Callable[..., Tensor], given: list[Tensor]) -> Callable[[], Any]:
    def call() -> Any:
        with torch.no_grad():
            return look(*given)

    return call


def training_of(look: Callable[..., Tensor], given: list[Tensor]) -> Callable[[], Any]:
    given = [x.clone().requires_grad_() for x in given]
    slopes = torch.randn_like(given[0])
    return lambda: torch.autograd.grad(look(*given), given, slopes)


def compared(ours: Callable[[], Any], theirs: Callable[[], Any], pairs: int) -> dict[str, float]:
    """Medians over pairs; the first of each kind, which pays for memory and caches, is left out."""
    ours(), theirs()
    times: list[tuple[float, float]] = []
    for pair in range(pairs):
        if pair % 2:
            times.append((seconds(ours), seconds(theirs)))
        else:
            second, first = seconds(theirs), seconds(ours)
            times.append((first, second))
    return {
        "attend_ms": 1000 * statistics.median(own for own, _ in times),
        "torch_ms": 1000 * statistics.median(other for _, other in times),
        "ratio": statistics.median(own / other for own, other in times),
    }


def measured(length: int, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """All rows of one length."""
    torch.manual_seed(1)
    rows = []
    given = [
        torch.randn(arguments.batch, arguments.heads, length, arguments.size) for _ in range(3)
    ]
    for need_weights in (False, True):

        def look(
            query: Tensor, key: Tensor, value: Tensor, need_weights: bool = need_weights
        ) -> Tensor:
            return attend(query, key, value, need_weights=need_weights)[0]

        for name, made in (("forward", forward_of), ("training", training_of)):
            found = compared(
                made(look, given), made(scaled_dot_product_attention, given), arguments.pairs
            )
            rows.append({"length": length, "weights": need_weights, "pass": name, **found})
            print(
                f"{length:6}  {'yes' if need_weights else 'no':7}  {name:8}  "
                f"{found['attend_ms']:9.2f}  {found['torch_ms']:9.2f}  {found['ratio']:5.2f}",
                flush=True,
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--size", type=int, default=64, help="of a head")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "attention.json")
    arguments = parser.parse_args()
    print(
        f"{'length':>6}  {'weights':7}  {'pass':8}  {'attend ms':>9}  {'torch ms':>9}  {'ratio':>5}"
    )
    # What the allocator learned from one length would change the times of the next.
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as alone:
        found = alone.map(measured, arguments.lengths, repeat(arguments))
        rows = [row for rows in found for row in rows]
    result = {
        "batch": arguments.batch,
        "heads": arguments.heads,
        "size": arguments.size,
        "pairs": arguments.pairs,
        "rows": rows,
        "machine": machine(),
        "versions": {"torch": torch.__version__},
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
