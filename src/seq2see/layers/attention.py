"""Attention, computed in one place, and its multi-head form.

Shapes: B batch, S source, T target, D model width, H heads, K head size.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers import shapes
from seq2see.layers.dropout import check_share, drop
from seq2see.layers.masks import combine
from seq2see.layers.positions import Positions, rotate
from seq2see.layers.scores import SCORES, Score, scaled_dot
from seq2see.layers.shapes import PADDED, KeysValues, Rows

Maybe = Tensor | None


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Maybe = None,
    *,
    bias: Maybe = None,
    score: Score = scaled_dot,
    dropout: float = 0.0,
    need_weights: bool = True,
) -> tuple[Tensor, Maybe]:
    """softmax(score(Q, K) + bias) V (equation 1), over the keys where mask is True.

    query (..., T, Kq), key (..., S, Kk), value (..., S, Kv); mask, bias broadcast to (..., T, S).
    The weights are returned before dropout. A query that may attend to no key gets zeros.
    """
    shapes.check_attention(query, key, value, mask, bias)
    if not need_weights and score is scaled_dot and dropout == 0.0:
        return _fused(query, key, value, mask, bias), None
    if bias is not None:
        mask = combine(mask, bias != float("-inf"))
    if score is scaled_dot and not torch.is_grad_enabled():
        weights = _weights_in_place(query, key, mask, bias)
    else:
        scores = score(query, key)  # (..., T, S)
        scores = scores if bias is None else scores + bias
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, -1)  # NaN where no key is open
        weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return drop(weights, dropout) @ value, weights if need_weights else None  # (..., T, Kv)


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Maybe, bias: Maybe) -> Tensor:
    shapes.check_product(query, key)
    if torch.is_autocast_enabled("cpu"):  # in bfloat16, the backward pass would be slow
        with torch.autocast("cpu", enabled=False):
            return _fused(query.float(), key.float(), value.float(), mask, bias)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    if mask is not None and mask.dim() < 2:
        mask = mask.expand(query.shape[-2], key.shape[-2])  # the kernel wants two dimensions
    return functional.scaled_dot_product_attention(query, key, value, mask)  # (..., T, Kv)


def _weights_in_place(query: Tensor, key: Tensor, mask: Maybe, bias: Maybe) -> Tensor:
    """Reuse the memory of the scores: fresh memory would cost more than the sums."""
    weights = scaled_dot(query, key)
    if mask is not None:  # adding −∞ takes a fraction of the time of filling it in
        weights += torch.where(mask, 0.0 if bias is None else bias, float("-inf"))
    torch.softmax(weights, -1, out=weights)
    if mask is None or (torch.is_inference_mode_enabled() and bool(mask.any(-1).all())):
        return weights
    return weights.masked_fill(~mask, 0.0)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_H) W^O, head_i = attend(Q W_i^Q, K W_i^K, V W_i^V) (section 3.2.2).

    The heads share `inner` features, by default `width`; keys and values may have other widths.
    With `rotary`, positions rotate queries and keys: for self-attention.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        inner: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        score: str = "scaled_dot",
        rotary: bool = False,
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"score is {score!r}; it must be one of {', '.join(SCORES)}")
        self.heads, self.dropout = heads, check_share(dropout)
        self.size = shapes.head_size(width, heads, inner, key_width, value_width)
        self.query = nn.Linear(width, heads * self.size, bias)
        self.key = nn.Linear(key_width or width, heads * self.size, bias)
        self.value = nn.Linear(value_width or width, heads * self.size, bias)
        self.output = nn.Linear(heads * self.size, width, bias)
        self.score = SCORES[score](self.size, heads)
        self.unscaled = score == "unscaled"
        self.rotary = Positions(self.size) if rotary else None
        self.scale_scores()

    def scale_scores(self) -> None:
        """Draw weights such that unscaled scores have variance one (Raffel et al., 2020)."""
        if self.unscaled:
            nn.init.normal_(self.query.weight, std=(self.size * self.query.in_features) ** -0.5)
            nn.init.normal_(self.key.weight, std=self.key.in_features**-0.5)

    def forward(
        self,
        query: Tensor,
        key: Tensor | KeysValues,
        value: Maybe = None,
        mask: Maybe = None,
        *,
        bias: Maybe = None,
        cache: KeysValues | None = None,
        rows: Rows = PADDED,
        need_weights: bool = False,
    ) -> tuple[Tensor, Maybe]:
        """query (B, T, D), key and value (B, S, D) → output (B, T, D) and weights (B, H, T, S).

        Keys and values extend the `cache`; the value is by default the key. A projected memory in
        place of the key brings its own mask and bias.
        """
        if isinstance(key, KeysValues):
            memory, mask, bias = key, key.mask, key.bias
            q = self._heads("query", query, rows, len(memory.keys))  # (B, H, T, K)
        else:
            past = 0 if cache is None else cache.keys.shape[2]
            start = past + key.shape[-2] - query.shape[-2]
            q = self._heads("query", query, rows, len(query), start)  # (B, H, T, K)
            memory = self.project(key, key if value is None else value, rows, past)
            memory = memory if cache is None else cache.extend(memory)
        k, v = memory.keys, memory.values  # (B, H, S, K)
        dropout = self.dropout if self.training else 0.0
        heads, weights = attend(
            q, k, v, mask, bias=bias, score=self.score, dropout=dropout, need_weights=need_weights
        )
        return self.output(rows.join(heads, query)), weights  # (B, T, D)

    def project(self, key: Tensor, value: Tensor, rows: Rows = PADDED, past: int = 0) -> KeysValues:
        """Project the positions after `past` others."""
        k = self._heads("key", key, rows, len(key), past)
        return KeysValues(k, self._heads("value", value, rows, len(value)))

    def _heads(self, name: str, x: Tensor, rows: Rows, sentences: int, start: int = 0) -> Tensor:
        linear = getattr(self, name)
        shapes.check_sequence(name, x, linear.in_features, rows)
        heads = rows.split(linear(x), self.heads, sentences)  # (B, H, T, K)
        if self.rotary is None or name == "value":
            return heads
        return rotate(heads, self.rotary(start, heads))
