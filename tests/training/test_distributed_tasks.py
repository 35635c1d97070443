"""Every task trains under torchrun as it does alone: they share one loop."""

import json
from pathlib import Path
from typing import Any

import pytest

from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import TASKS
from seq2see.text import corpora

WORDS = ("data.limit=60", "train.batch_tokens=128", "model.width=16", "model.heads=2")
WORDS += ("train.validate_sentences=2", "tokenizer.size=120")
PICTURES = ("model.width=8", "model.heads=2", "model.encoder_layers=2")
# A shipped recipe of each task, and what makes it small.
SMALL = {
    "translate": ("captions", *WORDS),
    "language": ("captions-language", *WORDS),
    "masked": ("captions-masked", *WORDS),
    "classify": ("captions-classify", *WORDS),
    "images": ("vit-digits", *PICTURES, "train.batch_sentences=20"),
    "diffusion": (
        *("scenes-tiny", *PICTURES, "train.batch_sentences=6", "data.limit=24", "model.patch=2"),
        *("diffusion.channels=[8, 16]", "diffusion.attention_levels=[0, 1]", "diffusion.steps=3"),
        *("diffusion.test_pictures=2",),
    ),
}
MORE = ("train.steps=3", "train.accumulate=3", "train.checkpoint_every=3", "model.dropout=0.2")


def validation_loss(folder: Path) -> float:
    events = map(json.loads, (folder / "log.jsonl").read_text(encoding="utf-8").splitlines())
    (loss,) = (event["loss"] for event in events if event["event"] == "validation")
    return float(loss)


@pytest.mark.usefixtures("few_scenes")
@pytest.mark.parametrize("task", TASKS)
def test_every_task_trains_with_two_processes_as_with_one(
    processes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    if task in ("images", "diffusion"):
        pytest.importorskip("sklearn")
        pytest.importorskip("scipy")
    monkeypatch.setattr(corpora, "CAPTIONS", {"train": 60, "val": 10, "test": 10})
    recipe, *settings = SMALL[task]
    assert Recipe.load(recipe).task == task
    for size in (1, 2):
        processes.train(size, recipe, tmp_path / f"{size}", *settings, *MORE)
    losses = [validation_loss(tmp_path / f"{size}") for size in (1, 2)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert (tmp_path / "2" / "scorecard.json").exists()
