"""Explanations that draw themselves: figures, files and the notebook, labelled by their axes."""

import io
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy
import pytest
import torch
from rich.console import Console

import seq2see
from seq2see.errors import InputError
from seq2see.see import attention_page
from seq2see.see.explanation import Explanation
from seq2see.see.figures import shown

TEXT, TARGET = "drei acht eins", "three eight one two four"  # of different lengths


@pytest.fixture(scope="module")
def explained(trained: Path) -> Explanation:
    return seq2see.load(trained, "cpu", engine="torch").explain(TEXT, TARGET)


def test_every_axis_is_named_and_as_long_as_the_side_it_names(explained: Explanation) -> None:
    sides = {"source": explained.source_tokens, "target": explained.target_out}
    assert len(sides["source"]) != len(sides["target"])
    assert explained.axes["decoder.0.cross"] == (
        "head",
        "target query position",
        "source key position",
    )
    assert explained.axes.keys() == explained.weights.keys()
    for name, (head, *axes) in explained.axes.items():
        assert head == "head"
        lengths = [len(sides[axis.split(" ")[0]]) for axis in axes]
        assert [*explained.weights[name].shape] == [2, *lengths]
        assert [axis.split(" ")[1] for axis in axes] == ["query", "key"]
        assert [len(tokens) for tokens in explained.tokens(name)] == lengths


def test_json_has_every_array_with_its_axes(explained: Explanation, tmp_path: Path) -> None:
    explained.save(tmp_path / "a.json")
    saved = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (saved["source"], saved["target"]) == (TEXT, TARGET)
    assert [layer["name"] for layer in saved["attention"]] == [*explained.weights]
    for layer in saved["attention"]:
        name = layer["name"]
        assert tuple(layer["axes"]) == explained.axes[name]
        assert (layer["rows"], layer["columns"]) == explained.tokens(name)
        assert torch.equal(torch.tensor(layer["weights"]), explained.weights[name])


def test_a_layer_and_a_head_are_drawn_with_their_axes_named(explained: Explanation) -> None:
    for layer, heads in (("encoder.0.self", [0, 1]), ("decoder.1.cross", [0, 1])):
        rows, columns = explained.tokens(layer)
        _, query, key = explained.axes[layer]
        for head, drawn in ((None, heads), (1, [1])):
            figure = explained.plot(layer, head)
            panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
            assert len(panels) == len(drawn)
            for axes, place in zip(panels, drawn, strict=True):
                cells = axes.images[0].get_array()
                assert numpy.array_equal(cells, explained.weights[layer][place].numpy())
                assert (axes.get_ylabel(), axes.get_xlabel()) == (query, key)
                title = axes.get_title() if head is None else figure.get_suptitle()
                assert f"layer {int(layer[8]) + 1}, head {place + 1}" in title
                assert [label.get_text() for label in axes.get_xticklabels()] == shown(columns)
                if place == drawn[0]:  # the others in the row have the same
                    assert [label.get_text() for label in axes.get_yticklabels()] == shown(rows)


def test_every_head_is_drawn_without_a_choice(explained: Explanation) -> None:
    panels = [axes for axes in explained.plot().axes if axes.get_label() != "<colorbar>"]
    assert len(panels) == 10


@pytest.mark.parametrize(
    ("layer", "head", "says"),
    [
        ("decoder.2.cross", None, r"layer 'decoder\.2\.cross' is not in this model\. Its layers: "),
        ("decoder.1.cross", 2, r"head 2: decoder\.1\.cross has 2 heads, counted from 0"),
        ("decoder.1.cross", -1, r"head -1: decoder\.1\.cross has 2 heads, counted from 0"),
        (None, 1, r"head 1 of which layer\? Its layers: encoder\.0\.self, "),
    ],
)
def test_a_choice_that_is_not_there_is_refused(
    explained: Explanation, layer: str | None, head: int | None, says: str
) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        explained.plot(layer, head)


def test_files_are_written_by_their_ending(explained: Explanation, tmp_path: Path) -> None:
    for ending in ("html", "png", "svg", "json"):
        explained.save(tmp_path / f"a.{ending}")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page == attention_page.page(explained)
    assert explained._repr_html_() in page
    assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.01
    assert "layer 2, head 2" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.pdf", "must end in .html, .json, .png or .svg"),
        ("no/a.html", "cannot write: No such file or directory"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(
    explained: Explanation, tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        explained.save(str(tmp_path / name))
    assert str(caught.value) == f"{tmp_path / name}: {says}"


def test_drawing_changes_no_number(explained: Explanation, trained: Path) -> None:
    plain = super(seq2see.Translator, seq2see.load(trained, "cpu", engine="torch"))
    for field in fields(explained):
        if field.name != "weights":
            assert getattr(explained, field.name) == getattr(
                plain.explain(TEXT, TARGET), field.name
            )
    for name, weights in plain.explain(TEXT, TARGET).weights.items():
        assert torch.equal(weights, explained.weights[name])


def test_models_without_some_attention_say_so(explained: Explanation, tmp_path: Path) -> None:
    bare = replace(explained, weights={})
    assert "This model has no attention to draw." in bare._repr_html_()
    with pytest.raises(InputError, match=r"^this model has no attention to draw$"):
        bare.save(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"Its layers: none with attention$"):
        bare.plot("decoder.0.cross")
    assert json.loads(bare.json())["attention"] == []


@pytest.mark.parametrize(
    ("kind", "unused", "blocks", "says"),
    [
        ("prefix", ("decoder_layers",), 3, None),
        ("lstm", ("heads",), 1, "no encoder self-attention and no decoder self-attention"),
    ],
)
def test_models_of_other_kinds_are_trained_and_drawn(
    toy: Any, tmp_path: Path, kind: str, unused: tuple[str, ...], blocks: int, says: str | None
) -> None:
    lines = toy.path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.split(" ")[0] not in unused]
    toy.path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    model = seq2see.train(
        toy.path,
        out=tmp_path / "run",
        overrides=[f"model.kind={kind}", "train.steps=1"],
        device="cpu",
        console=Console(file=io.StringIO()),
    )
    assert isinstance(model, seq2see.Translator)
    explained = model.explain(TEXT, TARGET)
    html = explained._repr_html_()
    assert html.count('<details class="kind"') == blocks
    assert says is None or f"This model has {says}." in html
    explained.plot("decoder.0.cross", 0)
