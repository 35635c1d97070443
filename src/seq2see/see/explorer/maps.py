"""Attention: an overview of all heads in a few levels, and one head exactly."""

from dataclasses import asdict
from typing import Any

import numpy as np
from torch import Tensor

from seq2see.layers.masks import causal_mask
from seq2see.see.explorer.gold import gold
from seq2see.see.explorer.inventory import check_heads
from seq2see.see.explorer.pair import Pair, forced
from seq2see.see.explorer.tokens import Tokens, input_tokens, source_tokens, target_tokens
from seq2see.see.head_statistics import entropy
from seq2see.tasks.translator import AXES, kind_of

LEVELS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"


def in_levels(weights: Tensor) -> str:
    """Write weights (T, S) row by row, a character for each of the levels 0, 1/63, …, 1."""
    levels = np.rint(63 * weights.double().numpy()).astype(np.int64)
    written: bytes = np.frombuffer(LEVELS, dtype=np.uint8)[levels].tobytes()
    return written.decode("ascii")


def attention(pair: Pair) -> dict[str, Any]:
    """Every head of a pair in 64 levels, with the gold alignment where there is one."""
    passed = forced(pair)
    sides = _sides(pair)
    return {
        **{name: asdict(tokens) for name, tokens in sides.items()},
        "text": pair.translation,
        "axes": AXES,
        "layers": overview(passed.weights),
        **gold(pair.translator, pair.text, pair.translation),
    }


def overview(weights: dict[str, Tensor]) -> list[dict[str, Any]]:
    """Every head of layers (H, T, S) in 64 levels."""
    return [
        {
            "name": layer,
            "kind": kind_of(layer),
            "heads": len(heads),
            "rows": heads.shape[1],
            "columns": heads.shape[2],
            "maps": [in_levels(head) for head in heads],
        }
        for layer, heads in weights.items()
    ]


def one_head(pair: Pair, layer: str, head: int) -> dict[str, Any]:
    """One head with its exact weights, and the reason for every position that it cannot see."""
    check_heads(pair.translator, [(layer, head)])
    weights = forced(pair).weights[layer][head]
    rows, columns = labels(pair, layer)
    return {
        "layer": layer,
        "head": head,
        "rows": rows.pieces,
        "columns": columns.pieces,
        "axes": AXES[kind_of(layer)],
        **exactly(weights, mask_of(layer, weights)),
    }


def exactly(weights: Tensor, mask: Tensor) -> dict[str, Any]:
    """The weights of a head (T, S), the positions that it may see, and why not the others."""
    return {
        "weights": weights.tolist(),
        "mask": mask.tolist(),
        "reasons": [["" if seen else "later position" for seen in row] for row in mask.tolist()],
        "entropy": entropy(weights).tolist(),
    }


def mask_of(layer: str, weights: Tensor) -> Tensor:
    """Positions that a query may attend to (T, S): a lone sentence has no padding to hide."""
    rows, columns = weights.shape
    if kind_of(layer) == "decoder.self":
        return causal_mask(rows, columns)
    return weights.new_ones(rows, columns).bool()


def labels(pair: Pair, layer: str) -> tuple[Tokens, Tokens]:
    """The tokens of a layer's rows and columns."""
    sides = _sides(pair)
    if layer.startswith("encoder"):
        return sides["source"], sides["source"]
    if layer.endswith("self"):
        return sides["input"], sides["input"]
    return sides["target"], sides["source"]


def _sides(pair: Pair) -> dict[str, Tokens]:
    target = target_tokens(pair.translator, pair.target)
    source = source_tokens(pair.translator, pair.text)
    return {"source": source, "input": input_tokens(target), "target": target}
