"""A run's checkpoints, against models opened from them one by one."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.see.explorer import checkpoints
from seq2see.see.explorer.checkpoints import training
from seq2see.see.explorer.maps import attention, one_head
from seq2see.see.explorer.pair import log_probability, pair_of
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator

TEXT = "drei acht eins"
HEAD = ("decoder.1.cross", 1)


class Gone(Exception):
    """The end of a request."""

    @classmethod
    def up(cls) -> None:
        raise cls


def test_a_head_is_followed_through_training(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    settings = ("train.steps=12", "train.checkpoint_every=3", "train.validate_sentences=5")
    opened = toy.train(run, *settings, "train.keep=4", "train.ema=0.5")
    saved = checkpoints.checkpoints(opened)
    assert [update for update, _ in saved] == [3, 6, 9, 12]
    followed = training(opened, TEXT, HEAD)
    shown = followed["checkpoints"]
    alone = []
    for update, folder in saved:  # each as a model directory of its own
        out = tmp_path / folder.name
        ignored = shutil.ignore_patterns("model.safetensors", "checkpoints", "store", "events")
        shutil.copytree(run, out, ignore=ignored)
        (out / "checkpoints").mkdir()
        shutil.copytree(folder, out / "checkpoints" / f"update-{update:08d}")
        alone.append(load(out, "cpu"))
    fixed = pair_of(alone[-1], TEXT).translation
    named = one_head(pair_of(alone[-1], TEXT), *HEAD)
    assert followed["row_tokens"] == named["rows"] != named["columns"]
    assert followed["column_tokens"] == named["columns"]
    for row, (update, _), translator in zip(shown, saved, alone, strict=True):
        pair = pair_of(translator, TEXT, fixed)
        layers = {layer["name"]: layer for layer in attention(pair)["layers"]}
        assert row["update"] == update and row["text"] == translator.translate([TEXT])[0]
        assert row["map"] == layers[HEAD[0]]["maps"][HEAD[1]]
        assert len(row["map"]) == row["rows"] * row["columns"]
        assert row["log_probability"] == pytest.approx(log_probability(pair), abs=1e-4)
    entropies = [row["entropy"] for row in shown]
    assert len(set(entropies)) == 4 and min(entropies) > 0
    monkeypatch.setattr(checkpoints, "MOST", 3)
    assert [row["update"] for row in training(opened, TEXT, HEAD)["checkpoints"]] == [3, 9, 12]
    with pytest.raises(InputError, match="head is 7"):
        training(opened, TEXT, (HEAD[0], 7))
    (saved[0][1] / "ema.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"^the checkpoint of update 3 cannot be read: it is dama"):
        training(opened, TEXT, HEAD)
    with pytest.raises(Gone):
        training(opened, TEXT, HEAD, check=Gone.up)


def test_a_model_without_checkpoints_says_so(tiny: Translator) -> None:
    assert checkpoints.checkpoints(tiny) == []
    with pytest.raises(InputError, match="this model has no checkpoints"):
        training(tiny, TEXT, HEAD)
