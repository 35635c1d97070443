"""Attention, computed in one place, and its multi-head form.

Shapes: B batch, S source, T target, D model width, H heads, K head size.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.dropout import check_share, drop
from seq2see.layers.masks import combine
from seq2see.layers.positions import Positions, rotate
from seq2see.layers.scores import SCORES, Score, scaled_dot
from seq2see.layers.shapes import check_attention, check_product, check_sequence, head_size

KeysValues = tuple[Tensor, Tensor]  # (B, H, S, K) each
Maybe = Tensor | None


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
    check_attention(query, key, value, mask, bias)
    if not need_weights and score is scaled_dot and dropout == 0.0:
        check_product(query, key)
        return _fused(query, key, value, mask, bias), None
    scores = score(query, key)  # (..., T, S)
    if bias is not None:
        mask = combine(mask, bias != float("-inf"))
    if torch.is_grad_enabled():
        scores = scores if bias is None else scores + bias
        weights = torch.softmax(
            scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1
        )
    else:  # in place, since fresh memory costs more than the sums; and to add −∞ takes a fraction of filling it in
        if mask is not None:
            scores += torch.where(mask, 0.0 if bias is None else bias, float("-inf"))
        weights = torch.softmax(scores, -1, out=scores)
    if mask is not None and not (torch.is_inference_mode_enabled() and bool(mask.any(-1).all())):
        weights = weights.masked_fill(
            ~mask, 0.0
        )  # a row with nothing to attend to is NaN here, zeros from here on
    return drop(weights, dropout) @ value, weights if need_weights else None  # (..., T, Kv)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None
) -> Tensor:
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    if mask is not None and mask.dim() < 2:
        mask = mask.expand(
            query.shape[-2], key.shape[-2]
        )  # the kernel takes no mask over the keys alone
    return functional.scaled_dot_product_attention(query, key, value, mask)  # (..., T, Kv)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_H) W^O, where head_i = attend(Q W_i^Q, K W_i^K, V W_i^V) (section 3.2.2).

    The heads share `inner` numbers, by default as many as `width`; keys and values may have widths of their own.
    With `rotary`, queries and keys are turned by their positions: for attention of a sequence to itself.
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
        self.heads, self.dropout, self.unscaled = heads, check_share(dropout), score == "unscaled"
        self.size = head_size(width, heads, inner, key_width, value_width)
        inner = heads * self.size
        self.query = nn.Linear(width, inner, bias)
        self.key = nn.Linear(key_width or width, inner, bias)
        self.value = nn.Linear(value_width or width, inner, bias)
        self.output = nn.Linear(inner, width, bias)
        self.score = SCORES[score](self.size, heads)
        self.rotary = Positions(self.size) if rotary else None
        self.even_out()

    def even_out(self) -> None:
        """Scores that are not divided by √K begin with variance one if the queries do it (Raffel et al., 2020)."""
        if self.unscaled:
            nn.init.normal_(self.query.weight, std=(self.size * self.query.in_features) ** -0.5)
            nn.init.normal_(self.key.weight, std=self.key.in_features**-0.5)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """query (B, T, D), key and value (B, S, D) → output (B, T, D) and, if asked, weights (B, H, T, S)."""
        return self.look(query, self.keys_values(key, value), mask, need_weights=need_weights)

    def keys_values(self, key: Tensor, value: Tensor, start: int = 0) -> KeysValues:
        """What there is to look at from position `start` on, split into heads; decoding keeps it between steps."""
        return self.turn(self._split("key", self.key, key), start), self._split(
            "value", self.value, value
        )

    def look(
        self,
        query: Tensor,
        pair: KeysValues,
        mask: Maybe = None,
        *,
        bias: Maybe = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Maybe]:
        """Attend with `query` (B, T, D) to keys and values that are already projected."""
        start = (
            pair[0].shape[2] - query.shape[1]
        )  # of a sequence that looks at itself, the last T positions
        query = self.turn(self._split("query", self.query, query), start)  # (B, H, T, K)
        dropout = self.dropout if self.training else 0.0
        heads, weights = attend(
            query,
            *pair,
            mask,
            bias=bias,
            score=self.score,
            dropout=dropout,
            need_weights=need_weights,
        )
        return self.output(heads.transpose(1, 2).flatten(2)), weights  # (B, T, D)

    def _split(self, name: str, projection: nn.Linear, x: Tensor) -> Tensor:
        check_sequence(name, x, projection.in_features)
        return torch.unflatten(projection(x), -1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, K)

    def turn(self, x: Tensor, start: int) -> Tensor:
        return x if self.rotary is None else rotate(x, self.rotary(start, x))  # (B, H, T, K)
