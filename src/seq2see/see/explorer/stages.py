"""The decoder's layers: what the model would have said after each of them.

The output layer reads the states of every layer, not of the last alone: the "logit lens".
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

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
    names = [f"{stack}.{number}" for number in range(len(getattr(model, stack)))]
    with outputs(model, names) as states:
        model(pair.batch)
    final = torch.tensor([*pair.target, END])
    return {
        "target": asdict(target_tokens(pair.translator, pair.target)),
        "layers": [
            {"layer": number, "steps": _steps(pair, model.output(norm(states[name]))[0], final)}
            for number, name in enumerate(names)
        ],
    }


def _steps(pair: Pair, logits: Tensor, final: Tensor) -> list[dict[str, Any]]:
    """Compare each step's likeliest token (T, V) with the translation's (T,)."""
    probabilities = logits.cpu().double().softmax(-1)
    best, tokens = probabilities.max(-1)
    chosen = probabilities.gather(1, final[:, None])
    ranks = (probabilities > chosen).sum(-1) + 1
    rows = (best.tolist(), tokens.tolist(), ranks.tolist(), chosen[:, 0].tolist())
    piece = pair.translator.tokenizers.target.piece
    return [
        {
            "token": piece(token),
            "probability": probability,
            "final_rank": rank,
            "final_probability": of_final,
        }
        for probability, token, rank, of_final in zip(*rows, strict=True)
    ]
