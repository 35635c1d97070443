"""Attention, computed in one place, and its multi-head form.

Shapes: B batch, S source, T target, D model width, H heads, K head size.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.dropout import dropout as drop
from seq2see.layers.masks import combine
from seq2see.layers.scores import Score, scaled_dot

KeysValues = tuple[Tensor, Tensor]  # (B, H, S, K) each


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    score: Score = scaled_dot,
    dropout: float = 0.0,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """softmax(score(Q, K) + bias) V (equation 1), over the places where mask is True.

    query (..., T, Kq), key (..., S, Kk), value (..., S, Kv); mask and bias broadcast to (..., T, S).
    The weights come back before dropout. A row that may attend to nothing gives zeros.
    """
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key has {key.shape[-2]} positions and value {value.shape[-2]}; they must be equal")
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; it must be bool, True = may attend")
    for name, given in (("mask", mask), ("bias", bias)):
        if given is not None and not _fits(given, query, key):
            places = f"(..., {query.shape[-2]}, {key.shape[-2]})"
            raise ValueError(f"{name} has shape {tuple(given.shape)}; it must broadcast to (..., T, S) = {places}")
    if not need_weights and score is scaled_dot and dropout == 0.0:
        return _fused(query, key, value, mask, bias), None
    scores = score(query, key)  # (..., T, S)
    if bias is not None:
        scores = scores + bias
        mask = combine(mask, bias > float("-inf"))
    if mask is None:
        weights = scores.softmax(-1)
    else:
        # The second fill turns the NaN of a row with nothing to attend to into zeros, in both directions.
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)
    output = drop(weights, dropout) @ value  # (..., T, Kv)
    return output, weights if need_weights else None


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    if mask is not None and mask.dim() < 2:
        mask = mask.expand(query.shape[-2], key.shape[-2])  # the kernel takes no mask over the keys alone
    return functional.scaled_dot_product_attention(query, key, value, mask)  # (..., T, Kv)


def _fits(given: Tensor, query: Tensor, key: Tensor) -> bool:
    places = zip(reversed(given.shape), (key.shape[-2], query.shape[-2]), strict=False)
    return given.dim() <= max(query.dim(), key.dim()) and all(size in (1, place) for size, place in places)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_H) W^O, where head_i = attend(Q W_i^Q, K W_i^K, V W_i^V) (section 3.2.2)."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0, score: Score = scaled_dot) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width ({width}) must be divisible by heads ({heads})")
        self.heads, self.dropout, self.score = heads, dropout, score
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """query (B, T, D), key and value (B, S, D) → output (B, T, D) and, if asked, weights (B, H, T, S)."""
        return self.look(query, self.keys_values(key, value), mask, need_weights=need_weights)

    def keys_values(self, key: Tensor, value: Tensor) -> KeysValues:
        """What there is to look at, projected and split into heads; decoding keeps it between steps."""
        return self._split(self.key(key)), self._split(self.value(value))

    def look(
        self, query: Tensor, keys_values: KeysValues, mask: Tensor | None = None, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with `query` (B, T, D) to keys and values that are already projected."""
        heads, weights = attend(
            self._split(self.query(query)),
            *keys_values,
            mask,
            score=self.score,
            dropout=self.dropout if self.training else 0.0,
            need_weights=need_weights,
        )  # (B, H, T, K)
        return self.output(heads.transpose(1, 2).flatten(2)), weights  # (B, T, D)

    def _split(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, -1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, K)
