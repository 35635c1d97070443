"""Attention for the page: levels, exact weights, masks and their reasons."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.batches import collate
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.see.attribution import METHODS
from seq2see.see.explorer.inventory import heads_of, kinds, methods
from seq2see.see.explorer.maps import LEVELS, attention, in_levels, one_head
from seq2see.see.explorer.pair import Pair, pair_of
from seq2see.tasks.translator import Translator
from seq2see.text import captions

HEADS = [("encoder.0.self", 2), ("decoder.1.self", 0), ("decoder.0.cross", 1)]


def weights_of(pair: Pair) -> dict[str, Any]:
    trace = Trace()
    with torch.inference_mode():
        pair.translator.model(collate([(pair.source, pair.target)], [0]), trace)
    return {name: weights[0] for name, weights in trace.weights.items()}


def test_levels_are_the_nearest_of_64() -> None:
    levels = in_levels(torch.tensor([[0.0, 1 / 63, 0.5], [35 / 63, 62 / 63, 1.0]]))
    assert levels == "01WZ-_" and len(set(LEVELS)) == 64
    assert in_levels(torch.tensor([[0.4 / 63, 0.6 / 63]])) == "01"


def test_the_overview_has_every_head_in_levels(pair: Pair) -> None:
    shown = attention(pair)
    expected = weights_of(pair)
    assert [layer["name"] for layer in shown["layers"]] == list(expected)
    for layer in shown["layers"]:
        heads = expected[layer["name"]]
        assert (layer["heads"], layer["rows"], layer["columns"]) == tuple(heads.shape)
        for drawn, weights in zip(layer["maps"], heads, strict=True):
            values = torch.tensor([LEVELS.index(character.encode()) for character in drawn]) / 63
            assert (values.view_as(weights) - weights).abs().max() <= 0.5 / 63 + 1e-6
    sides = [len(shown[side]["pieces"]) for side in ("source", "input", "target")]
    assert sides == [7, 4, 4] and shown["text"] == pair.translation
    assert shown["gold"] is None and shown["gold_words"] is None


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_one_head_is_exact_its_rows_sum_to_one_and_hidden_cells_are_zero(
    pair: Pair, layer: str, head: int
) -> None:
    shown = one_head(pair, layer, head)
    weights = torch.tensor(shown["weights"])
    assert torch.equal(weights, weights_of(pair)[layer][head])
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))
    mask = torch.tensor(shown["mask"])
    assert (weights[~mask] == 0).all() and (weights[mask] > 0).all()
    assert mask.all() == (layer != "decoder.1.self")
    for row, reasons in zip(shown["mask"], shown["reasons"], strict=True):
        assert reasons == ["" if seen else "later position" for seen in row]
    assert weights.shape == (len(shown["rows"]), len(shown["columns"]))
    assert shown["entropy"] == pytest.approx((-weights.xlogy(weights).sum(1)).tolist(), abs=1e-5)


def test_rows_and_columns_are_labelled_with_their_tokens(pair: Pair) -> None:
    cross = one_head(pair, "decoder.0.cross", 0)
    assert cross["rows"][-1] == cross["columns"][-1] == "</s>" and len(cross["rows"]) == 4
    assert cross["axes"] == ("target query position", "source key position")
    assert one_head(pair, "decoder.0.self", 0)["columns"][0] == "<s>"
    assert len(one_head(pair, "encoder.0.self", 0)["rows"]) == 7


def test_the_models_differ(twins: list[Translator]) -> None:
    first, second = (attention(pair_of(one, "drei acht", "three")) for one in twins)
    assert first["source"] == second["source"] and first["layers"] != second["layers"]


@pytest.mark.parametrize(
    ("layer", "head", "message"),
    [
        ("decoder.2.cross", 0, "layer: it must be one of encoder.0.self, decoder.0.self, "),
        ("x", 0, "layer: it must be one of"),
        ("decoder.1.cross", 3, "head is 3; decoder.1.cross has heads 0 to 2"),
    ],
)
def test_an_unknown_head_is_refused(pair: Pair, layer: str, head: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        one_head(pair, layer, head)


def test_the_inventory_is_that_of_the_model(tiny: Translator, make_tiny: Any) -> None:
    assert kinds(tiny) == [
        {"kind": "encoder.self", "layers": 1, "heads": 3},
        {"kind": "decoder.self", "layers": 2, "heads": 3},
        {"kind": "decoder.cross", "layers": 2, "heads": 3},
    ]
    assert len(heads_of(tiny)) == 15
    assert kinds(make_tiny(3, kind="lstm")) == [{"kind": "decoder.cross", "layers": 1, "heads": 1}]
    without = make_tiny(3, kind="gru", attend=False)
    assert kinds(without) == []
    assert attention(pair_of(without, "drei", "three"))["layers"] == []
    with pytest.raises(InputError, match="this model has no attention"):
        one_head(pair_of(without, "drei", "three"), "decoder.0.cross", 0)


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        ({}, []),
        ({"positions": "rotary"}, []),
        ({"kind": "prefix"}, ["norm", "rollout"]),
        ({"kind": "conv"}, ["norm", "rollout"]),
        ({"kind": "lstm"}, ["norm", "rollout"]),
        ({"kind": "gru", "attend": False}, ["norm", "rollout", "attention"]),
    ],
    ids=str,
)
def test_a_model_lists_the_attributions_that_it_allows(
    make_tiny: Any, model: dict[str, Any], missing: list[str]
) -> None:
    assert METHODS.keys() - set(methods(make_tiny(3, **model))) == {*missing}


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de"), ("zh", "en"), ("en", "zh")])
def test_captions_have_their_gold_alignment(tiny: Translator, languages: tuple[str, str]) -> None:
    caption = captions.generate("test", 1, languages=languages)[0]
    source, target = caption.source, caption.target
    named = dict(zip(("source", "target"), languages, strict=True))
    data = tiny.recipe.data.model_copy(update={"corpus": "captions", "max_length": 200, **named})
    recipe = tiny.recipe.model_copy(update={"data": data})
    translator = Translator(recipe, tiny.tokenizers, tiny.model, tiny.device)
    shown = attention(pair_of(translator, source, target))
    assert shown["gold"] == [list(link) for link in caption.alignment]
    words = {"source": captions.words(source), "target": captions.words(target)}
    assert shown["gold_words"] == words
    assert attention(pair_of(translator, source, "two"))["gold"] is None


def test_the_overview_of_a_large_model_is_small(make_tiny: Any) -> None:
    large = make_tiny(3, width=16, heads=8, encoder_layers=6, decoder_layers=6)
    draw = range(4, len(large.tokenizers.source))
    ids = [draw[place % len(draw)] for place in range(39)]  # 40 tokens with </s>
    pair = replace(pair_of(large, "drei", "three"), source=ids, target=ids)
    pair = replace(pair, text=" ".join(["drei"] * 39))
    content = json.dumps(attention(pair), ensure_ascii=False, separators=(",", ":"))
    assert len(content.encode()) <= 250_000
