"""Shapes of a pass: every axis has the size that its name says, every parameter is counted once."""

from typing import Any

import pytest
import torch

from seq2see.see.tensor_shapes import NamedTensor, tensor_shapes
from seq2see.tasks.translator import Translator

SOURCE, TARGET = [5, 6, 7, 8, 9, 10], [4, 8, 6]
MODELS: list[dict[str, Any]] = [
    {},
    {"norm": "post"},
    {"positions": "learned", "max_positions": 41, "score": "bilinear"},
    {"kind": "prefix"},
    {"kind": "lstm"},
    {"kind": "gru", "attend": False},
    {"kind": "conv", "kernel": 3},
]


def shapes(translator: Translator) -> dict[str, NamedTensor]:
    return {tensor.name: tensor for tensor in tensor_shapes(translator, SOURCE, TARGET)}


def test_axes_have_the_sizes_that_their_names_say(tiny: Translator) -> None:
    sizes = {"batch": 1, "source position": 7, "target position": 4, "feature": 12, "hidden": 10}
    sizes |= {"head": 3, "feature of all heads": 12, "vocabulary": len(tiny.tokenizers.target)}
    for tensor in tensor_shapes(tiny, SOURCE, TARGET):
        assert len(tensor.axes) == len(tensor.shape)
        for axis, size in zip(tensor.axes, tensor.shape, strict=True):
            assert axis in ("query position", "key position") or sizes[axis] == size, tensor
    named = shapes(tiny)
    assert named["decoder.1.cross_attention.weights"].shape == (1, 3, 4, 7)
    assert named["encoder.0.self_attention.weights"].shape == (1, 3, 7, 7)
    assert named["decoder.0.cross_attention.key"].axes[1] == "source position"
    assert named["decoder.0.cross_attention.query"].axes[1] == "target position"


def test_the_order_is_that_of_the_pass_from_ids_to_logits(tiny: Translator) -> None:
    names = [tensor.name for tensor in tensor_shapes(tiny, SOURCE, TARGET)]
    assert names[:2] == ["source", "target"] and names[-1] == "output"
    attention = "decoder.1.cross_attention"
    parts = [f"{attention}.{part}" for part in ("key", "query", "weights", "output")]
    places = [names.index(name) for name in [*parts, attention, "decoder.1", "decoder_norm"]]
    assert places == sorted(places)


def test_people_read_layers_from_one(tiny: Translator) -> None:
    named = shapes(tiny)
    text = "encoder layer 1, self-attention: queries of all heads, side by side"
    assert named["encoder.0.self_attention.query"].what == text
    assert named["decoder.1"].what == "decoder layer 2: its output"


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_parameter_is_counted_once(model: dict[str, Any], make_tiny: Any) -> None:
    translator = make_tiny(5, **model)
    tensors = tensor_shapes(translator, SOURCE, TARGET)
    total = sum(parameter.numel() for parameter in translator.model.parameters())
    outside = {"prefix": 2 * 12}.get(model.get("kind", ""), 0)  # vectors of the two segments
    assert sum(tensor.parameters for tensor in tensors) == total - outside
    assert tensors[-1].shape == (1, 4, len(translator.tokenizers.target))


def test_looking_at_shapes_changes_nothing(tiny: Translator) -> None:
    batch = torch.tensor([[*SOURCE, 1]])
    model: Any = tiny.model
    with torch.inference_mode():
        before = model.encode(batch).states
        tensor_shapes(tiny, SOURCE, TARGET)
        assert torch.equal(model.encode(batch).states, before)
    assert not any(module._forward_hooks for module in model.modules())
