"""seq2see with its own training loop, from the batch plan to the report of each update."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import worker

import seq2see
from seq2see.batches import IdPair, TextExamples, epoch_batches
from seq2see.models.build import build, pass_tokens
from seq2see.recipe.schema import Recipe
from seq2see.tasks.translate import Translate
from seq2see.training.epochs import Epochs
from seq2see.training.loop import Objective, Training
from seq2see.training.passes import usual_passes
from seq2see.training.update import workers_for


class Enough(Exception):
    """Raised when the meter has measured enough."""


class Listener:
    """Replaces the reporter of a run and reads the clock after each update."""

    def __init__(self, meter: worker.Meter) -> None:
        self.meter = meter
        self.tokens = 0

    def update(self, *, tokens: int, **rest: Any) -> None:
        done = self.meter.update(tokens - self.tokens)
        self.tokens = tokens
        if done:
            raise Enough

    def mark(self, seconds: float, tokens: int) -> None:
        """Ignore the start of the speed's measurement."""

    def say(self, text: str) -> None:
        """Ignore messages."""

    def epoch(self, **rest: Any) -> None:
        """Ignore the end of an epoch."""


def read(path: Path, size: int) -> list[IdPair]:
    """Read the pairs with one object per id, as a tokenizer's vocabulary produces them."""
    ids = list(range(size))
    with path.open(encoding="utf-8") as lines:
        shared = ([[ids[id] for id in side] for side in json.loads(line)] for line in lines)
        return [(source, target) for source, target in shared]


def main() -> None:
    job = worker.job()
    torch.set_num_threads(job["threads"])
    data = Path(job["data"])
    recipe = Recipe.load(data / "recipe.toml", job["overrides"])
    source_size = job["model"]["source_size"]
    target_size = job["model"]["target_size"]
    pairs = read(data / "pairs.jsonl", max(source_size, target_size))
    examples = TextExamples(pairs)
    batches = epoch_batches(examples.lengths, recipe.train, epoch=1)
    first = [[list(pairs[line]) for line in batch] for batch in batches[: recipe.train.accumulate]]
    # The meter checks the token counts of all further updates.
    assert first == next(worker.updates(job["data"])), "the batches differ from the shared ones"
    torch.manual_seed(1)
    model = build(recipe, source_size, target_size)
    accumulate = recipe.train.accumulate
    longest = pass_tokens(model)
    cpu = torch.device("cpu")
    workers = workers_for(usual_passes(examples.lengths, batches, accumulate, cpu, longest), cpu)
    meter = worker.Meter(job)
    with tempfile.TemporaryDirectory() as folder:

        def validate(model: torch.nn.Module, share: float) -> Any:
            raise AssertionError("the epoch ended before the measurement did")

        loss = Translate(recipe).loss
        objective = Objective(Epochs(lambda epoch: examples, recipe.train), loss, validate, longest)
        listener: Any = Listener(meter)
        width = recipe.model.width
        training = Training(model, recipe.train, width, Path(folder), objective, listener, workers)
        with contextlib.suppress(Enough):
            training.run()
    versions = worker.versions("torch") | {"seq2see": seq2see.__version__}
    parameters = sum(parameter.numel() for parameter in model.parameters())
    meter.report(parameters, versions, workers=workers)


if __name__ == "__main__":
    main()
