"""Memory and speed of a corpus that is larger than memory, from files to the first update.

    python benchmarks/store.py --pairs 50000 5000000 --out benchmarks/results/store.json

Pairs of the caption grammar are written to a TSV for each size, unless it is in `--corpora` already.
One process makes the store, which needs the tokenizer and the split; a second one starts a run with
the store there, and trains for some updates; a third one resumes it. Each starts in a new
interpreter, whose imports count, too.

Memory is sampled ten times a second and summed over a process and its workers. Anonymous memory is
what they have allocated. Resident memory counts the pages of files, too, that the system can take
back at any time: those of the store, and of libraries, once for each process.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from seq2see.scoring.card import machine

STEPS = 20  # of the run, and once more when it is resumed

RECIPE = """
[data]
train = "{train}"
hold_out = 20

[model]
width = 128

[train]
steps = 20
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


def age() -> float:
    """Seconds since this process began."""
    return time.time() - psutil.Process().create_time()


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Memory:
    """The peaks of the memory of this process and its children, in MB, while inside."""

    def __enter__(self) -> "Memory":
        self.peaks = {"peak_anonymous_mb": 0.0, "peak_resident_mb": 0.0}
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
            anonymous = resident = 0
            for process in (own, *own.children()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    memory = process.memory_info()
                    anonymous += memory.rss - memory.shared
                    resident += memory.rss
            totals = {"peak_anonymous_mb": anonymous, "peak_resident_mb": resident}
            self.peaks = {key: max(self.peaks[key], totals[key] / 2**20) for key in totals}


def prepare(recipe: Path, folder: Path) -> dict[str, Any]:
    """Make the tokenizer and the store; return seconds and memory."""
    from seq2see.tasks.table import read_recipe, task_of
    from seq2see.text.history import History
    from seq2see.text.store import ENCODING

    clock = Clock()
    with Memory() as memory:
        data = task_of(read_recipe(recipe)).data(None, History(), clock, folder)
        read = time.perf_counter() - clock.started
        before = processor_seconds()
        data.prepare(folder, None)
    total = time.perf_counter() - clock.started
    encoding = total - clock.stages[ENCODING]
    return {
        "pairs": len(data.corpus.train.pairs),
        "read_seconds": read,
        "tokenizer_seconds": clock.stages[ENCODING] - read,
        "encoding_seconds": encoding,
        "pairs_per_second": len(data.corpus.train.pairs) / encoding,
        "pairs_per_second_of_all": len(data.corpus.train.pairs) / total,
        "read_processor_seconds": before,
        "prepare_processor_seconds": processor_seconds() - before,
        **memory.peaks,
    }


def train(recipe: Path, folder: Path) -> dict[str, Any]:
    """Start or resume a run with the store there.

    Returns the seconds to its first update, and memory.
    """
    from seq2see.tasks.run import train
    from seq2see.training.update import Gradients

    resume = (folder / "checkpoints").exists()
    steps = 2 * STEPS if resume else STEPS
    first: list[tuple[float, float]] = []
    fill = Gradients.fill

    def timed(self: Gradients, *arguments: Any) -> Any:
        first.append((age(), processor_seconds()))
        return fill(self, *arguments)

    Gradients.fill = timed  # type: ignore[method-assign]
    with Memory() as memory:
        train(recipe, out=folder, resume=resume, overrides=[f"train.steps={steps}"])
    seconds, busy = first[0]
    return {
        "seconds_to_first_update": seconds,
        "processor_seconds_to_first_update": busy,
        "updates": len(first),
        **memory.peaks,
    }


def measure(pairs: int, corpora: Path) -> dict[str, Any]:
    """Measure one size of corpus."""
    corpus = corpora / f"{pairs}.tsv"
    if not corpus.exists():
        write_corpus(corpus, pairs)
    with tempfile.TemporaryDirectory() as name:
        recipe = Path(name) / "recipe.toml"
        recipe.write_text(RECIPE.format(train=corpus.absolute()), encoding="utf-8")
        (Path(name) / "run").mkdir()
        figures: dict[str, Any] = {"pairs": pairs}
        for result, stage in (("prepare", "prepare"), ("train", "train"), ("resume", "train")):
            command = [sys.executable, __file__, "--stage", stage, "--folder", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            figures[result] = json.loads(output)
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 5_000_000])
    parser.add_argument("--corpora", type=Path, help="folder to keep the corpora in")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--stage", choices=["prepare", "train"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        stage = prepare if options.stage == "prepare" else train
        print(json.dumps(stage(options.folder / "recipe.toml", options.folder / "run")))
        return
    with tempfile.TemporaryDirectory() as name:
        corpora = options.corpora or Path(name)
        rows = [measure(pairs, corpora) for pairs in options.pairs]
    result = json.dumps({"rows": rows, "machine": machine()}, indent=2)
    if options.out is None:
        print(result)
    else:
        options.out.write_text(f"{result}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
