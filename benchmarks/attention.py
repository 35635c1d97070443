"""Time of our attention beside torch's own kernel, and memory of additive attention.

    python benchmarks/attention.py time
    python benchmarks/attention.py memory

`time` runs `attend` and torch's `scaled_dot_product_attention` on the same queries, keys and values,
in pairs whose order alternates, so that a slow moment of the machine hits both; it needs an
otherwise idle machine. `memory` runs additive scores, whose network holds T × S × d numbers per
sentence (2 GB for 8 sentences of 512 tokens at d = 256), and takes the rise of resident memory.

Every length runs in a process of its own: the state of the allocator would change the next one.
Both print a table and write `results/attention.json` or `results/attention_memory.json`.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seq2see.bench.memory import peak_resident_mb
from seq2see.bench.rounds import medians, ratios, turns
from seq2see.layers.attention import attend
from seq2see.layers.scores import Additive
from seq2see.scoring.card import machine

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def forward_of(function: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], Any]:
    def call() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return call


def training_of(function: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], Any]:
    inputs = [x.clone().requires_grad_() for x in inputs]
    gradient = torch.randn_like(inputs[0])
    return lambda: torch.autograd.grad(function(*inputs), inputs, gradient)


def compare(ours: Callable[[], Any], theirs: Callable[[], Any], pairs: int) -> dict[str, float]:
    """Return median times and the median ratio, after one call of each to warm up."""
    calls = {"torch_ms": theirs, "attend_ms": ours}
    ours()
    theirs()
    times: dict[str, dict[int, float]] = {name: {} for name in calls}
    for number, name in turns([*calls], range(1, pairs + 1), alternate=True):
        times[name][number] = 1000 * seconds(calls[name])
    by_pair = [{name: times[name][number] for name in calls} for number in range(1, pairs + 1)]
    ratio = median(ratios(times["attend_ms"], times["torch_ms"]))
    return medians(by_pair) | {"ratio": ratio}


def time_rows(length: int, options: argparse.Namespace) -> list[Row]:
    """Compare the two at one length: forward and training, without and with weights."""
    torch.manual_seed(1)
    shape = (options.batch, options.heads, length, options.size)
    inputs = [torch.randn(shape) for _ in range(3)]
    rows = []
    for need_weights in (False, True):

        def ours(
            query: Tensor, key: Tensor, value: Tensor, need_weights: bool = need_weights
        ) -> Tensor:
            return attend(query, key, value, need_weights=need_weights)[0]

        for name, bind in (("forward", forward_of), ("training", training_of)):
            figures = compare(
                bind(ours, inputs), bind(scaled_dot_product_attention, inputs), options.pairs
            )
            row = {"length": length, "weights": need_weights, "pass": name}
            rows.append(row | {key: figures[key] for key in ("attend_ms", "torch_ms", "ratio")})
    return rows


def memory_rows(length: int, options: argparse.Namespace) -> list[Row]:
    """Measure additive scores at one length."""
    shape = (options.batch, length, options.size)
    query, key, value = (torch.randn(shape, requires_grad=True) for _ in range(3))
    score = Additive(options.size, options.size, options.size)
    small = [x[:1, :2] for x in (query, key, value)]
    attend(*small, score=score)[0].sum().backward()  # torch loads libraries on first use
    before = peak_resident_mb()
    output, _ = attend(query, key, value, score=score)
    forward = peak_resident_mb()
    output.sum().backward()
    all_pairs = options.batch * length**2 * options.size * 4 / 2**20
    row = {"length": length, "at_once_mb": all_pairs, "forward_mb": forward - before}
    return [row | {"training_mb": peak_resident_mb() - before}]


def show(row: Row) -> None:
    values = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()]
    print("".join(value.rjust(13) for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="time|memory")
    timing = commands.add_parser("time", help="attend beside torch's kernel")
    timing.set_defaults(measure=time_rows)
    timing.add_argument("--batch", type=int, default=8)
    timing.add_argument("--heads", type=int, default=8)
    timing.add_argument("--size", type=int, default=64, help="of a head")
    timing.add_argument("--lengths", type=int, nargs="+", default=(128, 256, 512, 1024))
    timing.add_argument("--pairs", type=int, default=30)
    timing.add_argument("--out", type=Path, default=RESULTS / "attention.json")
    memory = commands.add_parser("memory", help="additive attention")
    memory.set_defaults(measure=memory_rows)
    memory.add_argument("--batch", type=int, default=8)
    memory.add_argument("--size", type=int, default=256, help="of queries, keys and hidden layer")
    memory.add_argument("--lengths", type=int, nargs="+", default=(64, 128, 256, 512))
    memory.add_argument("--out", type=Path, default=RESULTS / "attention_memory.json")
    options = parser.parse_args()
    rows: list[Row] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for measured in pool.map(options.measure, options.lengths, repeat(options)):
            for row in measured:
                if not rows:
                    show({name: name for name in row})
                show(row)
                rows.append(row)
    sizes = {name: value for name, value in vars(options).items() if isinstance(value, int)}
    result = sizes | {
        "rows": rows,
        "machine": machine(),
        "versions": {"torch": torch.__version__},
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
