"""Attention figures: a panel for every head, with queries as rows and keys as columns."""

from dataclasses import replace

import numpy
import pytest
import torch

from seq2see.errors import InputError
from seq2see.see import attention
from seq2see.see.numbers import numbers_of
from seq2see.tasks.translator import Explanation, Translator

KINDS = ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross")


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    """Two layers of three heads each; five source and three target tokens."""
    weights = {}
    for kind, rows, columns in zip(KINDS, (5, 4, 4), (5, 4, 5), strict=True):
        for layer in range(2):
            drawn = torch.rand(3, rows, columns, generator=torch.Generator().manual_seed(layer))
            weights[kind.format(layer)] = drawn / drawn.sum(-1, keepdim=True)
    target = ["▁x", "y", "▁z"]
    source = ["▁a", "b", "▁c", "▁d", "</s>"]
    return Explanation("ab c d", "xy z", source, ["<s>", *target], [*target, "</s>"], weights)


def test_every_layer_and_head_has_its_panel(translator: Translator) -> None:
    explanation = translator.explain("drei acht eins")
    figure = attention.on_one_page(explanation)
    model = translator.recipe.model
    layers = [model.encoder_layers, model.decoder_layers, model.decoder_layers]
    panels = [[axes for axes in block.axes if axes.images] for block in figure.subfigs]
    assert [len(block) for block in panels] == [count * model.heads for count in layers]
    for block, kind in zip(panels, KINDS, strict=True):
        for i, axes in enumerate(block):
            layer, head = divmod(i, model.heads)
            assert axes.get_title() == f"layer {layer + 1}, head {head + 1}"
            drawn = axes.images[0].get_array()
            assert numpy.array_equal(drawn, explanation.weights[kind.format(layer)][head].numpy())


def test_axes_are_named_and_not_swapped(explanation: Explanation) -> None:
    (table,) = numbers_of(attention.draw_head(explanation, "cross", 1, 2))
    assert table.head == [
        "target query position ↓  source key position →",
        "·a",
        "b",
        "·c",
        "·d",
        "</s>",
    ]
    assert [row[0] for row in table.rows] == ["·x", "y", "·z", "</s>"]
    weights = explanation.weights["decoder.1.cross"][2].tolist()
    assert [row[1:] for row in table.rows] == [[f"{w:.4g}" for w in row] for row in weights]
    for kind, rows in (("encoder", "·a"), ("decoder", "<s>"), ("cross", "·x")):
        (page,) = attention.draw(explanation, kind, layer=1)
        tables = numbers_of(page)
        assert [table.caption for table in tables] == [f"layer 2, head {h}" for h in (1, 2, 3)]
        assert {table.rows[0][0] for table in tables} == {rows}


def test_what_is_too_tall_is_cut_between_kinds_and_layers(
    explanation: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(attention.draw(explanation)) == 1
    monkeypatch.setattr(attention, "PAGE_HEIGHT", 6.0)
    assert [len(numbers_of(page)) for page in attention.draw(explanation)] == [6, 6, 6]
    monkeypatch.setattr(attention, "PAGE_HEIGHT", 1.0)
    pages = attention.draw(explanation)
    assert [len(numbers_of(page)) for page in pages] == [3] * 6
    assert [numbers_of(page)[0].caption for page in pages] == [
        f"layer {layer}, head 1" for layer in (1, 2, 1, 2, 1, 2)
    ]


def test_a_large_head_has_its_weights_written(explanation: Explanation) -> None:
    figure = attention.draw_head(explanation, "encoder", 0, 1)
    assert figure.get_suptitle().startswith("Encoder self-attention, layer 1, head 2\n")
    weights = explanation.weights["encoder.0.self"][1]
    written = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert written == {
        (s, t): f"{weights[t, s]:.2f}".removeprefix("0")
        for t in range(5)
        for s in range(5)
        if weights[t, s] >= attention.SMALLEST_FIGURE
    }


def test_what_is_not_there_is_refused(explanation: Explanation) -> None:
    with pytest.raises(InputError, match=r"^--layer 3: must be at most 2 for cross-attention$"):
        attention.draw(explanation, "cross", 2)
    with pytest.raises(
        InputError, match=r"^--head 4: must be at most 3 for cross-attention, layer 1$"
    ):
        attention.draw_head(explanation, "cross", 0, 3)
    weights = {name: w for name, w in explanation.weights.items() if "cross" in name}
    partial = replace(explanation, weights=weights)
    with pytest.raises(InputError, match=r"^this model has no encoder self-attention to draw$"):
        attention.draw(partial, "encoder")
    assert len(attention.draw(partial, layer=1)) == 1  # without the kinds that have no such layer
    with pytest.raises(InputError, match=r"^this model has no attention to draw$"):
        attention.draw(replace(explanation, weights={}))


def test_gold_links_are_drawn_at_target_row_and_source_column() -> None:
    figure = attention.with_gold(torch.rand(2, 3), {(2, 0)}, ["a", "b", "c"], ["x", "y"], "title")
    _, gold = numbers_of(figure)
    assert gold.head == ["target word ↓  source word →", "a", "b", "c"]
    assert gold.rows == [["x", "0", "0", "1"], ["y", "0", "0", "0"]]
