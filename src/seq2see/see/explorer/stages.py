"""The decoder's layers: what the model would have said after each of them.

The output layer reads the states of every layer, not of the last alone: the "logit lens".
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from seq2see.batches import Batch, Ids
from seq2see.errors import InputError
from seq2see.models.language import PrefixModel
from seq2see.models.transformer import Transformer
from seq2see.see.explorer.hooks import outputs
from seq2see.see.explorer.pair import Pair
from seq2see.see.explorer.tokens import target_tokens
from seq2see.text.specials import END


@torch.inference_mode()
def layers(pair: Pair) -> dict[str, Any]:
    """Read the states of each decoder layer as the model reads its last ones."""
    model: Any = pair.translator.model
    if isinstance(model, Transformer):
        stack, norm = "decoder", model.decoder_norm
    elif isinstance(model, PrefixModel):
        stack, norm = "encoder", model.encoder_norm
    else:
        kind = pair.translator.recipe.model.kind
        raise InputError(f"a model of kind {kind} has no decoder layers that its output could read")
    named = pair.translator.tokenizers.target
    return {
        "target": asdict(target_tokens(pair.translator, pair.target)),
        "layers": by_layer(model, (stack, norm), pair.batch, [*pair.target, END], named.piece),
    }


@torch.inference_mode()
def by_layer(
    model: Any,
    stack: tuple[str, Any],
    batch: Batch,
    final: Ids,
    piece: Callable[[int], str],
) -> list[dict[str, Any]]:
    """Compare the likeliest ids after each layer of a stack, given with its norm, with others."""
    layers, norm = stack
    names = [f"{layers}.{number}" for number in range(len(getattr(model, layers)))]
    with outputs(model, names) as states:
        model(batch)
    ids = torch.tensor(final)
    return [
        {"layer": number, "steps": _steps(model.output(norm(states[name]))[0], ids, piece)}
        for number, name in enumerate(names)
    ]


def _steps(logits: Tensor, final: Tensor, piece: Callable[[int], str]) -> list[dict[str, Any]]:
    """Compare each step's likeliest id (T, V) with the final one (T,)."""
    probabilities = logits.cpu().double().softmax(-1)
    best, tokens = probabilities.max(-1)
    chosen = probabilities.gather(1, final[:, None])
    ranks = (probabilities > chosen).sum(-1) + 1
    rows = (best.tolist(), tokens.tolist(), ranks.tolist(), chosen[:, 0].tolist())
    return [
        {
            "token": piece(token),
            "probability": probability,
            "final_rank": rank,
            "final_probability": of_final,
        }
        for probability, token, rank, of_final in zip(*rows, strict=True)
    ]
