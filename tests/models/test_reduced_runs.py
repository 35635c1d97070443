"""Runs and commands with models that merge or prune tokens."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.cli import main as cli
from seq2see.ct2 import convert
from seq2see.errors import InputError
from seq2see.layers.reduction.plans import Merging, Pruning, SoftPruning
from seq2see.layers.trace import Trace
from seq2see.models.reduced import plan_of
from seq2see.tasks import run
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END

# To score a model that has hardly begun to learn.
QUICK = ("data.hold_out=10", "decode.beam=1", "decode.max_ratio=0.1")
SOFT = ("reduce.mode=soft", "reduce.thresholds=0.5", "reduce.penalty=1.0")


def test_thresholds_are_learned_then_kept_while_the_rest_is_trained_further(
    toy: Any, tmp_path: Path
) -> None:
    prune = ["reduce.kind=prune", "model.encoder_layers=2", *QUICK]
    learned = toy.train(tmp_path / "soft", *prune, *SOFT, "train.steps=8")
    soft: Any = plan_of(learned.model)
    assert isinstance(soft, SoftPruning) and soft.thresholds.requires_grad
    assert (soft.thresholds - torch.tensor([0.25, 0.5])).abs().min() > 1e-5
    overrides = [*prune, "train.steps=4"]
    folder = tmp_path / "hard"
    trained: Any = run.train(
        toy.path, out=folder, overrides=overrides, init=tmp_path / "soft", device="cpu"
    )
    hard: Any = plan_of(trained.model)
    assert type(hard) is Pruning and torch.equal(hard.thresholds, soft.thresholds)
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    assert torch.equal(weights["encoder.plan.thresholds"], soft.thresholds)
    texts = ["drei acht vier", "zwei eins"]
    again = load(folder, "cpu")
    assert again.translate(texts) == trained.translate(texts)
    trace = Trace(weights=False)
    network: Any = again.model
    network.encode(torch.tensor([[4, 5, 6, 7, 8, 9, 10, 11, 12, END]]), trace)
    assert trace.reductions[-1].real.sum() < 10
    earlier = with_earlier_names(folder, tmp_path / "earlier")
    assert load(earlier, "cpu").translate(texts) == trained.translate(texts)


def with_earlier_names(folder: Path, copy: Path) -> Path:
    """A copy of a model directory whose thresholds have the name that version 0.1 gave them."""
    shutil.copytree(folder, copy)
    weights = safetensors.torch.load_file(copy / "model.safetensors")
    weights["plan.thresholds"] = weights.pop("encoder.plan.thresholds")
    safetensors.torch.save_file(weights, copy / "model.safetensors")
    return copy


def test_a_run_that_merges_is_resumed(toy: Any, tmp_path: Path) -> None:
    merge = ("reduce.kind=merge", "reduce.r=2", "train.checkpoint_every=2", *QUICK)
    whole = toy.train(tmp_path / "whole", *merge, "train.steps=4")
    toy.train(tmp_path / "parts", *merge, "train.steps=2")
    for name in ("model.safetensors", "scorecard.json"):
        (tmp_path / "parts" / name).unlink()
    parts = toy.train(tmp_path / "parts", *merge, "train.steps=4", resume=True)
    plan: Any = plan_of(parts.model)
    assert plan.r == [2]
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_trained_model_merges_on_request(translator: Translator, trained: Path) -> None:
    texts = ["drei acht vier fünf", "zwei eins"]
    plain = translator.translate(texts)
    assert load(trained, "cpu", merge=0).translate(texts) == plain
    merging: Any = load(trained, "cpu", merge=2)
    assert isinstance(plan_of(merging.model), Merging)
    explained = merging.explain("drei acht vier fünf")
    tokens = len(explained.source_tokens)
    assert explained.weights["encoder.0.self"].shape == (2, tokens, tokens)
    assert explained.weights["decoder.1.cross"].shape == (2, len(explained.target_out), tokens)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_translate_and_evaluate_have_the_option(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    translate = ("translate", "--model", trained)
    for merge in ("0", "1"):
        assert call(monkeypatch, *translate, "--merge", merge, "drei acht") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "three eight" and len(lines) == 2
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("drei acht vier fünf sechs\n", encoding="utf-8")
    reference.write_text("three eight four five six\n", encoding="utf-8")
    files = ("--source", source, "--reference", reference, "--json")
    scores = []
    for merge in ("0", "3"):
        assert call(monkeypatch, "evaluate", "--model", trained, *files, "--merge", merge) == 0
        scores.append(json.loads(capsys.readouterr().out)["bleu"])
    assert scores[0] > 99 > scores[1]
    assert call(monkeypatch, *translate, "--engine", "ct2", "--merge", "1", "drei") == 2
    assert "--merge 1: CTranslate2 cannot merge tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("model.kind=lstm", "Recurrent has no encoder that could merge or prune tokens"),
        ("model.positions=rotary", "rotary positions need every token"),
    ],
)
def test_models_that_cannot_merge_say_so(toy: Any, tmp_path: Path, setting: str, rule: str) -> None:
    if "lstm" in setting:
        text = toy.path.read_text(encoding="utf-8")
        toy.path.write_text(text.replace("heads = 2\n", ""), encoding="utf-8")
    toy.train(tmp_path / "run", setting, "train.steps=1", *QUICK)
    with pytest.raises(InputError, match=f"^--merge 2: {rule}"):
        load(tmp_path / "run", "cpu", merge=2)


def test_a_model_that_merges_is_not_exported(toy: Any, translator: Translator) -> None:
    with pytest.raises(InputError, match="'merge' cannot be exported to CTranslate2"):
        convert.refuse(toy.recipe("reduce.kind=merge"), translator.tokenizers)
