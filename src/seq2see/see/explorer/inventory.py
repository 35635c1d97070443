"""Everything that a model has to look at: kinds, layers and heads of attention, attributions."""

from collections.abc import Iterable
from typing import Any

import torch

from seq2see.batches import collate
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.see.alignment import Head
from seq2see.see.attribution import METHODS, attribute
from seq2see.tasks.translator import Translator
from seq2see.text.specials import UNKNOWN

AXES = {
    "encoder.self": ["source query position", "source key position"],
    "decoder.self": ["target query position", "target key position"],
    "decoder.cross": ["target query position", "source key position"],
}


def kind_of(layer: str) -> str:
    """The kind of attention of a layer: "decoder.2.cross" → "decoder.cross"."""
    stack, _, kind = layer.split(".")
    return f"{stack}.{kind}"


@torch.inference_mode()
def attentions(translator: Translator) -> dict[str, int]:
    """The number of heads of each attention layer, by its name, in the order of the pass."""
    trace = Trace()
    one = collate([([UNKNOWN], [UNKNOWN])], [0]).to(translator.device)
    translator.model(one, trace)
    return {layer: weights.shape[1] for layer, weights in trace.weights.items()}


def heads_of(translator: Translator) -> list[Head]:
    """Every head of a model."""
    layers = attentions(translator)
    return [(layer, head) for layer, heads in layers.items() for head in range(heads)]


def kinds(translator: Translator) -> list[dict[str, Any]]:
    """The kinds of attention that a model has, with their numbers of layers and heads."""
    by_kind: dict[str, list[int]] = {kind: [] for kind in AXES}
    for layer, heads in attentions(translator).items():
        by_kind[kind_of(layer)].append(heads)
    return [
        {"kind": kind, "layers": len(counts), "heads": counts[0]}
        for kind, counts in by_kind.items()
        if counts
    ]


def check_heads(translator: Translator, heads: Iterable[Head]) -> None:
    """Refuse a layer or a head that the model does not have."""
    layers = attentions(translator)
    if not layers:
        raise InputError("this model has no attention")
    for layer, head in heads:
        if layer not in layers:
            raise InputError(f"layer: it must be one of {', '.join(layers)}")
        if not 0 <= head < layers[layer]:
            raise InputError(f"head is {head}; {layer} has heads 0 to {layers[layer] - 1}")


def methods(translator: Translator) -> list[str]:
    """The methods of attribution that work for a model: some need attention of a kind."""
    return [method for method in METHODS if _applies(translator, method)]


def _applies(translator: Translator, method: str) -> bool:
    try:
        attribute(translator, [UNKNOWN], [UNKNOWN], method)
    except InputError:
        return False
    return True
