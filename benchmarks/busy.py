"""Speed beside busy processes, for several ways in which threads wait for each other.

    python benchmarks/busy.py --model runs/multi30k --export runs/multi30k-ct2 \\
        --source test_2016_flickr.de.gz --out benchmarks/results/busy.json

Each setting runs in a process of its own, beside 0, 1 and 2 processes that compute without end: it
trains the model's recipe for some seconds, validates once, translates with PyTorch and with
CTranslate2. All settings take turns; the figures are medians over the rounds.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seq2see.bench.rounds import medians, turns

SETTINGS = {
    "spinning, the libraries' default": {},
    "`OMP_WAIT_POLICY=PASSIVE`, as shipped": {"OMP_WAIT_POLICY": "PASSIVE"},
    "`GOMP_SPINCOUNT=2000`": {"GOMP_SPINCOUNT": "2000"},
    "`KMP_BLOCKTIME=0`": {"KMP_BLOCKTIME": "0"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
LOADS = (0, 1, 2)
WARM_UP_UPDATES = 2


def train_and_validate(model: Path, seconds: float) -> dict[str, float]:
    """Train on the recipe's batches; return updates per second and the seconds of a validation."""
    import torch

    from seq2see.batches import epoch_batches
    from seq2see.models.build import pass_tokens
    from seq2see.tasks.table import open_directory, task_of
    from seq2see.training.optimizer import optimizer
    from seq2see.training.passes import usual_passes
    from seq2see.training.update import Gradients, workers_for
    from seq2see.training.workers import one_thread

    directory = open_directory(model)
    recipe = directory.recipe
    task = task_of(recipe)
    data = task.data(None, directory.history)
    with tempfile.TemporaryDirectory() as folder:
        data.prepare(Path(folder), directory)
    network = task.build(data).train()
    steps = optimizer(network, recipe.train.optimizer)
    examples = data.train(1)
    batches = epoch_batches(examples.lengths, recipe.train, 1)
    longest = pass_tokens(network)
    cpu = torch.device("cpu")
    passes = usual_passes(examples.lengths, batches, recipe.train.accumulate, cpu, longest)
    gradients = Gradients(network, task.loss, workers_for(passes, cpu), longest)
    updates = 0
    started = time.perf_counter()
    for number, batch in enumerate(batches):
        if number == WARM_UP_UPDATES:
            started = time.perf_counter()
            updates = 0
        gradients.fill(examples, [batch], f"busy/{number}")
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        with one_thread():
            steps.step()
        steps.zero_grad(set_to_none=True)
        updates += 1
        if number > WARM_UP_UPDATES and time.perf_counter() - started > seconds:
            break
    rate = updates / (time.perf_counter() - started)
    started = time.perf_counter()
    task.validate(network.eval(), data)
    return {"updates_per_second": rate, "validation_seconds": time.perf_counter() - started}


def translate(translator: Any, sources: list[str]) -> float:
    """Return sentences per second, after a warm-up."""
    translator.search(sources[:50])
    started = time.perf_counter()
    translator.search(sources)
    return len(sources) / (time.perf_counter() - started)


def work(options: argparse.Namespace) -> dict[str, float]:
    """Measure all figures of one setting in this process."""
    from seq2see.ct2 import engine
    from seq2see.tasks.table import load
    from seq2see.text.lines import read_lines

    sources = read_lines(options.source)[: options.sentences]
    figures = train_and_validate(options.model, options.seconds)
    figures["torch_sentences_per_second"] = translate(load(options.model, "cpu"), sources)
    figures["ct2_sentences_per_second"] = translate(engine.load(options.export), sources)
    return figures


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Run processes that compute without end."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run every setting beside every load, in turn; return the medians."""
    from seq2see.scoring.card import machine

    settings = [(name, load) for load in LOADS for name in SETTINGS]
    rows: dict[tuple[str, int], list[dict[str, float]]] = {setting: [] for setting in settings}
    rounds = range(1, options.rounds + 1)
    for number, (name, load) in turns(settings, rounds, alternate=True):
        with busy(load):
            command = [sys.executable, *sys.argv, "--worker"]
            worker = subprocess.run(
                command, env=os.environ | SETTINGS[name], stdout=subprocess.PIPE, check=True
            )
        rows[name, load].append(json.loads(worker.stdout))
        print(f"round {number}, {load} busy, {name}: {rows[name, load][-1]}", file=sys.stderr)
    results = [
        {"setting": name, "busy": load, **medians(rows[name, load]), "rounds": rows[name, load]}
        for name, load in settings
    ]
    keys = ("seconds", "sentences", "rounds")
    return {"rows": results, **{key: getattr(options, key) for key in keys}, "machine": machine()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--export", type=Path, required=True, help="its `seq2see export`")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6.0, help="of training")
    parser.add_argument("--sentences", type=int, default=500, help="to translate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options)))
    else:
        options.out.write_text(json.dumps(measure(options), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
