"""Runs through the store: the bits of lists in memory, a shared cache, mixed corpora, damage."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.batches import TextExamples, epoch_batches
from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import task_of
from seq2see.tasks.text import TextData
from seq2see.text import tokenizers
from seq2see.text.history import History
from seq2see.text.separation import Scan

MULTI30K = Path(os.environ.get("SEQ2SEE_DATA", "")) / "multi30k"


def prepared(recipe: Recipe, folder: Path) -> TextData:
    folder.mkdir(exist_ok=True)
    data: TextData = task_of(recipe).data(None, History())
    data.prepare(folder, None)
    return data


def same_as_in_memory(data: TextData, recipe: Recipe, epoch: int = 1) -> None:
    """Compare an epoch of batches with those of examples that are lists."""
    stored = data.train(epoch)
    encoded = data.task.encode(data.tokenizers, data.corpus.train)
    listed = TextExamples([encoded[line] for line in data.lines], data.task.shifted)
    assert stored.lengths.tolist() == listed.lengths.tolist()
    batches = epoch_batches(stored.lengths, recipe.train, epoch)
    assert [*batches] == [*epoch_batches(listed.lengths, recipe.train, epoch)]
    for lines in batches[:5]:
        one, other = stored.batch(lines), listed.batch(lines)
        assert one.lines == other.lines
        assert torch.equal(one.source, other.source)
        assert torch.equal(one.target_in, other.target_in)
        assert torch.equal(one.target_out, other.target_out)


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not under SEQ2SEE_DATA")
def test_multi30k_gives_the_same_batches_as_in_memory(tmp_path: Path) -> None:
    recipe = Recipe.load("multi30k", ["data.limit=3000", "tokenizer.sampling=0"])
    same_as_in_memory(prepared(recipe, tmp_path / "run"), recipe)


def test_the_toy_gives_the_same_batches_as_in_memory(toy: Any, tmp_path: Path) -> None:
    same_as_in_memory(prepared(toy.recipe(), tmp_path / "run"), toy.recipe())


def test_two_runs_share_a_cache(
    toy: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "cache"))
    stores = tmp_path / "cache" / "stores"

    def files() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in stores.glob("*/*")}

    small.train("one", "train.steps=1")
    before = files()
    assert len([*stores.iterdir()]) == 3  # ids, tokenizers, and the record of reading the corpus
    monkeypatch.setattr(tokenizers, "train", lambda *_: pytest.fail("a tokenizer is trained again"))
    monkeypatch.setattr(Scan, "of", lambda mixture: pytest.fail("the corpus is read again"))
    small.train("two", "train.steps=1")
    assert files() == before
    for name in ("one", "two"):
        assert not (tmp_path / name / "store").exists()
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def test_a_damaged_store_stops_a_run_and_a_removed_one_is_made_again(
    small: Any, tmp_path: Path, killed_after: Any
) -> None:
    with killed_after(1):
        small.train("run", "train.checkpoint_every=1", "train.steps=2")
    (path,) = (tmp_path / "run" / "store").glob("*/00000.ids")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match=r"00000.ids: damaged: its SHA-256 is not the one"):
        small.train("run", "train.checkpoint_every=1", "train.steps=2", resume=True)
    for file in path.parent.iterdir():
        file.unlink()
    small.train("run", "train.checkpoint_every=1", "train.steps=2", resume=True)
    assert path.read_bytes() == content


def test_an_epoch_of_mixed_corpora(toy: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("".join(f"neu {n}\tnew {n}\n" for n in range(40)), encoding="utf-8")
    keys = {"train": None, "mix": {str(toy.pairs): 0.5, str(other): 3}, "hold_out": 5}
    recipe = toy.recipe().model_copy(update={"data": toy.recipe().data.model_copy(update=keys)})
    data = prepared(recipe, tmp_path / "run")
    first, second = (share.pairs for share in data.corpus.shares)
    epochs = [data.train(epoch) for epoch in (1, 2, 1)]
    assert {len(epoch.lengths) for epoch in epochs} == {round(first / 2) + 3 * second}
    texts = [[tuple(source) for source, _ in epoch.pairs] for epoch in epochs]
    assert texts[0] == texts[2] != texts[1]
    assert f"mixed to {len(texts[0]):,} in an epoch" in data.summary()
