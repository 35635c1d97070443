"""Memory and speed of a corpus that is larger than memory, from files to the first update.

    python benchmarks/store.py --pairs 50000 5000000 --out benchmarks/results/store.json

Pairs of the caption grammar are written to a TSV for each size. One process makes the store, which
needs the tokenizer and the split; a second one starts a run with the store there, and trains for
some updates. Memory is the resident one at its peak; that of the making is the sum over the process
and its workers, sampled, where shared pages count for each.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from seq2see.bench.memory import peak_resident_mb
from seq2see.scoring.card import machine

RECIPE = """
[data]
train = "{train}"

[model]
width = 128

[train]
steps = {steps}
batch_tokens = 4096
lr = 0.001
checkpoint_every = 1000000
validate_sentences = 50
"""


def write_corpus(path: Path, pairs: int) -> None:
    """Write captions; a number makes those of later rounds new sentences."""
    from seq2see.text import captions

    round_size = min(pairs, 200_000)
    drawn = [(pair.source, pair.target) for pair in captions.generate("train", round_size)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(pairs):
            source, target = drawn[number % round_size]
            mark = f" ({number // round_size})" if number >= round_size else ""
            file.write(f"{source}{mark}\t{target}{mark}\n")


class Clock:
    """Times at which stages began."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.stages: dict[str, float] = {}

    def __call__(self, text: str, share: float | None) -> None:
        self.stages.setdefault(text.split(" on ")[0], time.perf_counter() - self.started)


class Memory:
    """The peak of the resident memory of this process and its children, in MB, while inside."""

    def __enter__(self) -> "Memory":
        self.peak = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self.ended.wait(0.1):
            total = 0
            for process in (own, *own.children()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += process.memory_info().rss
            self.peak = max(self.peak, total / 2**20)


def prepare(recipe: Path, folder: Path) -> dict[str, Any]:
    """Make the tokenizer and the store; return seconds and memory."""
    from seq2see.tasks.table import read_recipe, task_of
    from seq2see.text.history import History
    from seq2see.text.store import ENCODING

    clock = Clock()
    with Memory() as memory:
        data = task_of(read_recipe(recipe)).data(None, History(), clock)
        read = time.perf_counter() - clock.started
        data.prepare(folder, None)
    total = time.perf_counter() - clock.started
    encoding = total - clock.stages[ENCODING]
    return {
        "pairs": len(data.corpus.train.pairs),
        "read_seconds": read,
        "tokenizer_seconds": clock.stages[ENCODING] - read,
        "encoding_seconds": encoding,
        "pairs_per_second": len(data.corpus.train.pairs) / encoding,
        "peak_memory_mb": memory.peak,
    }


def train(recipe: Path, folder: Path) -> dict[str, Any]:
    """Start a run with the store there; return the seconds to its first update, and memory."""
    from seq2see.tasks.run import train
    from seq2see.training.update import Gradients

    started = time.perf_counter()
    first: list[float] = []
    fill = Gradients.fill

    def timed(self: Gradients, *arguments: Any) -> Any:
        first.append(time.perf_counter() - started)
        return fill(self, *arguments)

    Gradients.fill = timed  # type: ignore[method-assign]
    train(recipe, out=folder)
    return {
        "seconds_to_first_update": first[0],
        "updates": len(first),
        "peak_memory_mb": peak_resident_mb(),
    }


def measure(pairs: int, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "pairs.tsv", pairs)
        recipe = folder / "recipe.toml"
        recipe.write_text(RECIPE.format(train=folder / "pairs.tsv", steps=steps), encoding="utf-8")
        (folder / "run").mkdir()
        figures: dict[str, Any] = {"pairs": pairs}
        for stage in ("prepare", "train"):
            command = [sys.executable, __file__, "--stage", stage, "--folder", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            figures[stage] = json.loads(output)
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 5_000_000])
    parser.add_argument("--steps", type=int, default=20, help="updates of the run")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--stage", choices=["prepare", "train"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        stage = prepare if options.stage == "prepare" else train
        print(json.dumps(stage(options.folder / "recipe.toml", options.folder / "run")))
        return
    rows = [measure(pairs, options.steps) for pairs in options.pairs]
    result = json.dumps({"rows": rows, "machine": machine()}, indent=2)
    if options.out is None:
        print(result)
    else:
        options.out.write_text(f"{result}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
