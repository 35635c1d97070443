"""seq2see by its own training loop, from planning the batches to reporting each update."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import worker

import seq2see
from seq2see.batches import IdPair, plan
from seq2see.models.build import build
from seq2see.recipe.schema import Recipe
from seq2see.training.loop import Training
from seq2see.training.update import workers_for


class Enough(Exception):
    """The meter has seen all it needs."""


class Listener:
    """Stands where the reporter of a run stands, and looks at the clock after each update."""

    def __init__(self, meter: worker.Meter) -> None:
        self.meter, self.tokens = meter, 0

    def update(self, *, tokens: int, **rest: Any) -> None:
        done = self.meter.update(tokens - self.tokens)
        self.tokens = tokens
        if done:
            raise Enough

    def say(self, text: str) -> None:
        """Nobody listens."""

    def epoch(self, **rest: Any) -> None:
        """Nothing to note."""


def read(path: Path, size: int) -> list[IdPair]:
    """The pairs as a tokenizer's vocabulary gives them: one object for each id, wherever it comes."""
    ids = list(range(size))
    with path.open(encoding="utf-8") as lines:
        both = ([[ids[id] for id in side] for side in json.loads(line)] for line in lines)
        return [(source, target) for source, target in both]


def main() -> None:
    job = worker.job()
    torch.set_num_threads(job["threads"])
    data = Path(job["data"])
    recipe = Recipe.load(data / "recipe.toml", job["overrides"])
    pairs = read(
        data / "pairs.jsonl", max(job["model"]["source_size"], job["model"]["target_size"])
    )
    batches = plan(pairs, recipe.train, epoch=1)
    first = [[list(pairs[line]) for line in batch] for batch in batches[: recipe.train.accumulate]]
    assert first == next(worker.updates(job["data"])), (
        "other batches than everybody's"
    )  # the rest: see Meter
    torch.manual_seed(1)
    model = build(recipe, job["model"]["source_size"], job["model"]["target_size"])
    meter = worker.Meter(job)
    with tempfile.TemporaryDirectory() as folder:

        def validate(model: torch.nn.Module) -> Any:
            raise AssertionError("an epoch is over: the measurement is meant to end before")

        training = Training(
            model,
            recipe.train,
            recipe.model.width,
            Path(folder),
            lambda epoch: pairs,
            validate,
            Listener(meter),
            workers := workers_for(pairs, batches, recipe.train.accumulate, torch.device("cpu")),
        )
        with contextlib.suppress(Enough):
            training.run()
    found = worker.versions("torch") | {"seq2see": seq2see.__version__}
    meter.report(sum(p.numel() for p in model.parameters()), found, workers=workers)


if __name__ == "__main__":
    main()
