"""A new task needs a class and a line in the table: here one that copies a sequence of digits."""

import hashlib
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from seq2see.batches import Batch, TextExamples
from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.models.init import Rows
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe
from seq2see.tasks import table
from seq2see.tasks.predict import predict, token_loss
from seq2see.tasks.protocol import Report
from seq2see.tasks.run import evaluate_own, train
from seq2see.text.history import History
from seq2see.text.progress import Progress, silent
from seq2see.text.specials import SPECIALS
from seq2see.training.report import Validation

RECIPE = """
task = "copy"

[data]
train = "digits.txt"

[model]
width = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.1

[train]
steps = 60
batch_tokens = 256
lr = 0.01
warmup = 5
checkpoint_every = 20
"""
SIZE = len(SPECIALS) + 10
CPU = torch.device("cpu")


class CopyData:
    """Lines of digits; the last ones are held out."""

    grows: ClassVar[bool] = False
    left_out = 0
    overlap: ClassVar[dict[str, int]] = {}

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        lines = text.split()
        ids = [[len(SPECIALS) + int(digit) for digit in line] for line in lines]
        self.examples = {
            "train": TextExamples([(line, line) for line in ids[:-40]]),
            "val": TextExamples([(line, line) for line in ids[-40:-20]]),
            "test": TextExamples([(line, line) for line in ids[-20:]]),
        }
        self.parts: dict[str, dict[str, Any]] = {
            name: {
                "lines": len(self.examples[name]),
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }
            for name in ("train", "val")
        }
        self.tests = ["test"]
        self.notes: list[str] = []
        self.history = History()
        self.seen: dict[str, int] = {}

    def prepare(self, folder: Path, parent: ModelDirectory | None) -> None:
        (folder / "digits.json").write_text(json.dumps(SIZE))

    def train(self, epoch: int) -> TextExamples:
        return self.examples["train"]

    def summary(self) -> str:
        return f"{len(self.examples['train'])} lines of digits"


class Copier:
    """The object that a user of this task works with."""

    def __init__(self, recipe: Recipe, model: Transformer) -> None:
        self.recipe = recipe
        self.model = model.eval()

    @torch.inference_mode()
    def loss(self, lines: Sequence[str]) -> float:
        ids = [[len(SPECIALS) + int(digit) for digit in line] for line in lines]
        examples = TextExamples([(line, line) for line in ids])
        return predict(self.model, examples, self.recipe.train, CPU).mean_loss


class Copy:
    """Task `copy`: a sequence of digits → the same sequence."""

    medium: ClassVar[str] = "digits"
    command: ClassVar[str] = "seq2see copy"
    unit: ClassVar[str] = "digits"

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def check(self) -> None:
        if self.recipe.reduce.kind != "none":
            raise ValueError("reduce.kind is not for task 'copy'")

    def data(
        self,
        where: Path | None,
        history: History,
        progress: Progress = silent,
        folder: Path | None = None,
    ) -> CopyData:
        return CopyData((where or Path()) / str(self.recipe.data.train))

    def build(self, data: CopyData) -> Transformer:
        return Transformer(self.recipe.model, SIZE, SIZE, "all")

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return token_loss(model, batch, self.recipe.train)

    def validate(self, model: nn.Module, data: CopyData, share: float = 1.0) -> Validation:
        predictions = predict(model, data.examples["val"], self.recipe.train, CPU)
        share = predictions.accuracy
        return Validation(predictions.mean_loss, {"copied": share}, f"{share:.0%} copied", [])

    def score(self, opened: Copier, data: CopyData, test: str) -> Report:
        predictions = predict(opened.model, data.examples[test], self.recipe.train, CPU)
        share = predictions.accuracy
        return Report({"copied": share}, [f"{share:.1%} of the digits copied"])

    def open(
        self, directory: ModelDirectory, device: torch.device, merge: int | None = None
    ) -> Copier:
        size = json.loads((directory.path / "digits.json").read_text())
        model = Transformer(self.recipe.model, size, size, "all")
        directory.fill(model)
        return Copier(self.recipe, model)

    def inside(self) -> str:
        raise InputError("a copier shows nothing")

    def rows(self, vocabulary: Any) -> Rows:
        return {}


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe of the new task, whose line in the table is all that the package learns of it."""
    monkeypatch.setitem(table.TASKS, "copy", Copy)
    draw = random.Random(1)
    lines = ["".join(draw.choices("0123456789", k=draw.randint(2, 6))) for _ in range(400)]
    (tmp_path / "digits.txt").write_text("\n".join(lines))
    path = tmp_path / "copy.toml"
    path.write_text(RECIPE)
    return path


def run(recipe: Path, out: Path, *overrides: str, **options: Any) -> tuple[Copier, str]:
    said = io.StringIO()
    console = Console(file=said, soft_wrap=True)
    opened = train(
        recipe, data=recipe.parent, out=out, overrides=overrides, console=console, **options
    )
    return opened, said.getvalue()


def test_it_trains_scores_and_opens(recipe: Path, tmp_path: Path) -> None:
    copier, said = run(recipe, tmp_path / "run")
    assert "360 lines of digits" in said
    assert "% copied" in said and "of the digits copied" in said
    card = json.loads((tmp_path / "run" / "scorecard.json").read_text())
    copied = card["tests"]["test"]["copied"]
    assert copied > 0.3  # a tenth is chance
    again = table.open_model(tmp_path / "run", "cpu")
    assert isinstance(again, Copier)
    assert again.loss(["31415", "92"]) == copier.loss(["31415", "92"])
    report = evaluate_own(tmp_path / "run", tmp_path)
    assert report.values == {"copied": copied}


def test_it_resumes_bit_for_bit(recipe: Path, tmp_path: Path) -> None:
    run(recipe, tmp_path / "whole")
    run(recipe, tmp_path / "parts", "train.steps=20")
    for name in ("model.safetensors", "scorecard.json"):
        (tmp_path / "parts" / name).unlink()
    _, said = run(recipe, tmp_path / "parts", resume=True)
    assert "continuing from" in said
    whole, parts = (tmp_path / name / "model.safetensors" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_its_own_check_and_command_reach_the_user(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"copy.toml: reduce.kind is not for task 'copy'"):
        run(recipe, tmp_path / "run", "reduce.kind=merge")
    run(recipe, tmp_path / "run", "train.steps=1")
    with pytest.raises(InputError, match="a model of task 'copy', which is for seq2see copy"):
        table.load(tmp_path / "run")


def test_an_unknown_task_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(RECIPE)
    with pytest.raises(InputError, match=r"copy.toml: task = 'copy': not one of translate, "):
        train(path, out=tmp_path / "run")
