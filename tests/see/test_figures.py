"""Attention figures: a panel for every head, with queries as rows and keys as columns."""

import re
from pathlib import Path

import matplotlib.image
import numpy
import pytest
import torch

from seq2see.errors import InputError
from seq2see.see import figures
from seq2see.tasks.translator import Translator


def test_every_layer_and_head_has_its_panel(translator: Translator) -> None:
    explanation = translator.explain("drei acht eins")
    figure = figures.attention(explanation)
    blocks = figure.subfigs
    model = translator.recipe.model
    layers = [model.encoder_layers, model.decoder_layers, model.decoder_layers]
    assert [len(block.axes) for block in blocks] == [count * model.heads for count in layers]
    for block, kind in zip(
        blocks, ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross"), strict=True
    ):
        for i, axes in enumerate(block.axes):
            layer, head = divmod(i, model.heads)
            shown = axes.images[0].get_array()
            assert numpy.array_equal(shown, explanation.weights[kind.format(layer)][head].numpy())
    cross = blocks[2].axes[0]
    assert [label.get_text() for label in cross.get_yticklabels()] == explanation.target_out
    assert [label.get_text() for label in cross.get_xticklabels()] == explanation.source_tokens


def test_heads_are_named_alike_and_counted_from_1() -> None:
    assert figures.layer_and_head(1, 2) == "layer 2, head 3"
    for name, title in (
        ("encoder.0.self", "encoder self-attention, layer 1, head 3"),
        ("decoder.11.self", "decoder self-attention, layer 12, head 3"),
        ("decoder.1.cross", "cross-attention, layer 2, head 3"),
    ):
        assert figures.head_title(name, 2) == title


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_figure_is_written(translator: Translator, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    figures.save(figures.attention(translator.explain("drei $acht$ <eins> & x")), path)
    if ending == "png":
        assert matplotlib.image.imread(path).std() > 0.01
    else:
        assert "layer 1, head 2" in re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8"))


def test_an_svg_is_the_same_each_time(translator: Translator, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        figures.save(figures.attention(translator.explain("drei acht")), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_gold_links_are_drawn_at_target_row_and_source_column() -> None:
    figure = figures.alignment(torch.rand(2, 3), {(2, 0)}, ["a", "b", "c"], ["x", "y"], "title")
    assert figure.axes[1].images[0].get_array().tolist() == [[0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("name", "rule"), [("a.txt", "must end in .png or .svg"), ("no/a.png", "there is no folder")]
)
def test_an_impossible_path_is_refused(tmp_path: Path, name: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        figures.check(tmp_path / name)


def test_a_path_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=r"folder\.png: cannot write: Is a directory"):
        figures.check(tmp_path / "folder.png")
    figures.check(tmp_path / "a.png")
    monkeypatch.setattr(figures.os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(InputError, match=r"a\.png: cannot write: Permission denied"):
        figures.check(tmp_path / "a.png")


def test_a_large_figure_gets_a_lower_resolution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_PIXELS", 300)
    figures.save(
        figures.alignment(torch.rand(20, 30), set(), ["a"] * 30, ["x"] * 20, "title"),
        tmp_path / "a.png",
    )
    assert max(matplotlib.image.imread(tmp_path / "a.png").shape) <= 300
