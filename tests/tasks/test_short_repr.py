"""Reprs of what users work with: one short line, and no weights."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn

import seq2see
from seq2see.batches import collate
from seq2see.tasks.short_repr import parameters


def test_models_of_translation(trained: Path, exported: Path) -> None:
    size = parameters(seq2see.load(trained, engine="torch").model)
    assert repr(seq2see.load(trained)) == f"Translator(de→en, 1+2 layers, {size}, {trained})"
    says = f"Engine(de→en, 1+2 layers, CTranslate2 float32, {exported})"
    assert repr(seq2see.load(exported)) == says


def test_language_models(captions: Any) -> None:
    model = seq2see.load_language(captions.model("masked"))
    size = parameters(model.model)
    says = f"LanguageModel(de, task masked, 2 layers, {size}, {model.directory})"
    assert repr(model) == says
    with pytest.raises(TypeError, match="text is None; it must be a string"):
        model.fill(None)


def test_picture_models(pictured: Path) -> None:
    model = seq2see.load_pictures(pictured)
    size = parameters(model.model)
    says = f"PictureModel(10 classes, 8×8 pixels, 2 layers, {size}, {pictured})"
    assert repr(model) == says
    explanation = model.explain(pictured.parent / "digit.png")
    label = explanation.prediction.label
    assert repr(explanation) == f"PictureExplanation({label}, 4 attention maps)"


def test_explanations_and_batches(translator: seq2see.Translator) -> None:
    explanation = translator.explain("zwei vier")
    # 2 heads in 1 layer of the encoder, and twice in 2 layers of the decoder
    assert repr(explanation) == "Explanation('zwei vier' → 'two four', 10 attention maps)"
    batch = collate([([5, 6, 7], [8]), ([5], [6])], [0, 1])
    assert repr(batch) == "Batch(2 lines, (2, 4) → (2, 2))"


@pytest.mark.parametrize(
    ("rows", "says"), [(85, "85k"), (999, "999k"), (2100, "2.1M"), (61_000, "61.0M")]
)
def test_parameters_are_rounded(rows: int, says: str) -> None:
    assert parameters(nn.Linear(1000, rows, bias=False)) == f"{says} parameters"
