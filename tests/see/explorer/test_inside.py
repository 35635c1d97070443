"""Layers, anatomy and attention by hand, against the model's own forward pass."""

from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.layers.positions import sinusoidal
from seq2see.see.explorer.anatomy import anatomy
from seq2see.see.explorer.by_hand import by_hand
from seq2see.see.explorer.maps import one_head
from seq2see.see.explorer.pair import Pair, pair_of
from seq2see.see.explorer.stages import layers
from seq2see.see.explorer.translation import predictions
from seq2see.tasks.translator import Translator

MODELS: list[dict[str, Any]] = [{}, {"norm": "post"}, {"positions": "rotary"}, {"kind": "prefix"}]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_last_layer_is_the_model_itself(make_tiny: Any, model: dict[str, Any]) -> None:
    pair = pair_of(make_tiny(5, **model), "drei acht eins", "three one")
    shown = layers(pair)["layers"]
    depth = 1 if model.get("kind") else 2
    assert [layer["layer"] for layer in shown] == list(range(depth))
    for ours, step in zip(shown[-1]["steps"], predictions(pair), strict=True):
        assert ours["final_probability"] == pytest.approx(step["probability"], abs=1e-6)
        assert ours["token"] == step["top"][0]["token"]
        assert ours["probability"] == pytest.approx(step["top"][0]["probability"], abs=1e-6)
        better = [one for one in step["top"] if one["probability"] > step["probability"] + 1e-9]
        if len(better) < 5:
            assert ours["final_rank"] == len(better) + 1


def test_an_earlier_layer_is_the_model_without_the_later_ones(pair: Pair) -> None:
    first = layers(pair)["layers"][0]["steps"]
    model: Any = pair.translator.model
    whole, model.decoder = model.decoder, model.decoder[:1]
    try:
        cut = predictions(pair)
    finally:
        model.decoder = whole
    for ours, step in zip(first, cut, strict=True):
        assert ours["final_probability"] == pytest.approx(step["probability"], abs=1e-6)
        assert ours["token"] == step["top"][0]["token"]


def test_a_model_without_decoder_layers_says_so(make_tiny: Any) -> None:
    with pytest.raises(InputError, match="kind lstm has no decoder layers"):
        layers(pair_of(make_tiny(3, kind="lstm"), "drei", "three"))


@pytest.mark.parametrize("model", [*MODELS[:3], {"attention_width": 18}], ids=str)
@pytest.mark.parametrize("layer", ["encoder.0.self", "decoder.1.self", "decoder.0.cross"])
def test_attention_by_hand_is_the_models_own(
    make_tiny: Any, model: dict[str, Any], layer: str
) -> None:
    pair = pair_of(make_tiny(5, **model), "drei acht eins", "three one eight two")
    for head, query in ((0, 0), (2, 2)):
        shown = by_hand(pair, layer, head, query)
        exact = one_head(pair, layer, head)
        weights = [row["weight"] for row in shown["rows"]]
        assert weights == pytest.approx(exact["weights"][query], abs=1e-6)
        assert [not row["masked"] for row in shown["rows"]] == exact["mask"][query]
        assert [row["reason"] for row in shown["rows"]] == exact["reasons"][query]
        assert shown["keys"] == exact["columns"] == [row["key"] for row in shown["rows"]]
        assert shown["sum"] == pytest.approx(sum(row["exp"] for row in shown["rows"]))
        assert max(row["exp"] for row in shown["rows"]) == 1.0
        assert shown["size"] == len(shown["query"]) == (6 if "attention_width" in model else 4)


def test_the_prefix_model_reads_its_source_by_hand(make_tiny: Any) -> None:
    pair = pair_of(make_tiny(5, kind="prefix"), "drei acht eins", "three one eight two")
    shown = by_hand(pair, "encoder.0.self", 1, 2)
    weights = [row["weight"] for row in shown["rows"]]
    assert weights == pytest.approx(one_head(pair, "encoder.0.self", 1)["weights"][2], abs=1e-6)
    with pytest.raises(InputError, match="no query, key and value maps of its own"):
        by_hand(pair, "decoder.0.cross", 0, 0)


def test_every_number_by_hand_follows_from_those_before_it(pair: Pair) -> None:
    shown = by_hand(pair, "decoder.1.self", 1, 2)
    scale = shown["size"] ** -0.5
    output = torch.zeros(shown["size"], dtype=torch.float64)
    for row in shown["rows"]:
        product = sum(a * b for a, b in zip(shown["query"], row["key_vector"], strict=True))
        assert row["product"] == pytest.approx(product)
        assert row["scaled"] == pytest.approx(product * scale)
        assert row["weight"] == pytest.approx(row["exp"] / shown["sum"])
        output += row["weight"] * torch.tensor(row["value_vector"], dtype=torch.float64)
    assert shown["output"] == pytest.approx(output.tolist())
    assert [row["weight"] for row in shown["rows"][3:]] == [0.0]


def test_the_output_by_hand_is_what_the_attention_passes_on(pair: Pair) -> None:
    model: Any = pair.translator.model
    given: list[Any] = []
    linear = model.decoder[0].cross_attention.output
    handle = linear.register_forward_hook(lambda module, inputs, output: given.append(inputs[0]))
    with torch.inference_mode():
        model(pair.batch)
    handle.remove()
    for head in range(3):
        ours = by_hand(pair, "decoder.0.cross", head, 3)["output"]
        expected = given[0][0, 3, 4 * head : 4 * head + 4].tolist()
        assert ours == pytest.approx(expected, abs=1e-6)


def test_what_is_not_computed_by_hand_says_why(pair: Pair, make_tiny: Any) -> None:
    with pytest.raises(InputError, match="query is 4; the layer has 4 query positions"):
        by_hand(pair, "decoder.0.cross", 0, 4)
    bilinear = pair_of(make_tiny(3, score="bilinear"), "drei", "three")
    with pytest.raises(InputError, match="only the scaled dot product is computed, not bilinear"):
        by_hand(bilinear, "decoder.0.cross", 0, 0)
    recurrent = pair_of(make_tiny(3, kind="lstm"), "drei", "three")
    with pytest.raises(InputError, match="no query, key and value maps"):
        by_hand(recurrent, "decoder.0.cross", 0, 0)


def test_the_anatomy_counts_the_model(pair: Pair) -> None:
    shown = anatomy(pair)
    total = sum(parameter.numel() for parameter in pair.translator.model.parameters())
    assert shown["parameters"] == total == sum(one["parameters"] for one in shown["shapes"])
    assert shown["shapes"][-1]["shape"] == (1, 4, len(pair.translator.tokenizers.target))
    encodings = sinusoidal(7, 12).T  # fewer features than are shown at most
    torch.testing.assert_close(
        torch.tensor(shown["positions"]["encoder"]), encodings.float(), atol=1e-6, rtol=0
    )


def test_positions_are_shown_where_they_are_added(tiny: Translator, make_tiny: Any) -> None:
    for keys, there in (({"positions": "rotary"}, False), ({"kind": "lstm"}, False)):
        shown = anatomy(pair_of(make_tiny(3, **keys), "drei", "three"))
        assert (shown["positions"]["encoder"] is not None) == there
