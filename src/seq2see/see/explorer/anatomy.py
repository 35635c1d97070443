"""Anatomy of one pass: the shape of every tensor, parameters, and position encodings."""

from dataclasses import asdict
from typing import Any

import torch

from seq2see.see.explorer.pair import Pair
from seq2see.see.tensor_shapes import tensor_shapes

FEATURES = 16


def anatomy(pair: Pair) -> dict[str, Any]:
    """List every tensor from ids to logits, and the encodings of the source's positions."""
    translator = pair.translator
    tensors = tensor_shapes(translator, pair.source, pair.target)
    return {
        "shapes": [asdict(tensor) for tensor in tensors],
        "parameters": sum(parameter.numel() for parameter in translator.model.parameters()),
        "positions": {"encoder": _positions(translator.model, len(pair.source) + 1)},
    }


@torch.inference_mode()
def _positions(model: Any, length: int) -> list[list[float]] | None:
    """The first features of the encodings that are added to the source, feature by feature."""
    added = getattr(model, "source_positions", getattr(model, "target_positions", None))
    if added is None:
        return None
    like = model.output.weight.new_zeros(1, length, model.width)
    encodings: list[list[float]] = added(0, like)[:, :FEATURES].T.tolist()
    return encodings
