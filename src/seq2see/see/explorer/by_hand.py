"""Attention by hand: one query of one head, number by number."""

import math
from typing import Any

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.layers.positions import rotate
from seq2see.layers.scores import scaled_dot
from seq2see.see.explorer.hooks import outputs
from seq2see.see.explorer.inventory import check_heads
from seq2see.see.explorer.maps import labels, mask_of
from seq2see.see.explorer.pair import Pair, forced


@torch.inference_mode()
def by_hand(pair: Pair, layer: str, head: int, query: int) -> dict[str, Any]:
    """Compute softmax(q Kᵀ / √d) V for the query position `query`, in double precision."""
    check_heads(pair.translator, [(layer, head)])
    path = _attention(pair, layer)
    passed = forced(pair)
    if passed.reduced:
        raise InputError("this model merges or prunes tokens, so its keys are not those of tokens")
    model_weights = passed.weights[layer][head]
    if not 0 <= query < len(model_weights):
        raise InputError(f"query is {query}; the layer has {len(model_weights)} query positions")
    queries, keys, values = _vectors(pair, path, head)
    mask = mask_of(layer, model_weights)[query]
    products = keys @ queries[query]
    scaled = products / math.sqrt(keys.shape[1])
    exponentials = (scaled - scaled[mask].max()).exp().masked_fill(~mask, 0.0)
    weights = exponentials / exponentials.sum()
    columns = labels(pair, layer)[1].pieces
    rows = [
        {
            "key": columns[place],
            "key_vector": keys[place].tolist(),
            "product": float(products[place]),
            "scaled": float(scaled[place]),
            "masked": not mask[place],
            "reason": "" if mask[place] else "later position",
            "exp": float(exponentials[place]),
            "weight": float(weights[place]),
            "value_vector": values[place].tolist(),
        }
        for place in range(len(keys))
    ]
    return {
        "query": queries[query].tolist(),
        "keys": columns,
        "rows": rows,
        "sum": float(exponentials.sum()),
        "output": (weights @ values).tolist(),
        "size": keys.shape[1],
    }


def _attention(pair: Pair, layer: str) -> str:
    """The path of a layer's attention; refuse one that is not computed so."""
    model: Any = pair.translator.model
    stack, number, kind = layer.split(".")
    path = f"{stack}.{number}.{kind}_attention"
    if path not in {name for name, _ in model.named_modules()}:
        raise InputError("this layer's attention has no query, key and value maps of its own")
    if model.get_submodule(path).score is not scaled_dot:
        score = pair.translator.recipe.model.score
        raise InputError(f"by hand only the scaled dot product is computed, not {score}")
    return path


def _vectors(pair: Pair, path: str, head: int) -> list[Tensor]:
    """Queries (T, K), keys and values (S, K) of one head, with rotary positions applied."""
    model: Any = pair.translator.model
    attention = model.get_submodule(path)
    names = [f"{path}.{part}" for part in ("query", "key", "value")]
    with outputs(model, names) as kept:
        if path.startswith("encoder"):
            model.encode(pair.batch.source)  # the prefix model's one stack reads the target, too
        else:
            model(pair.batch)
    start = head * attention.size
    vectors = [kept[name][0, :, start : start + attention.size].cpu().double() for name in names]
    if attention.rotary is not None:
        vectors[:2] = [rotate(one, attention.rotary(0, one)) for one in vectors[:2]]
    return vectors
