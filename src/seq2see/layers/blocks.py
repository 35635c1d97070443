"""Encoder and decoder layers: attention and feed-forward, each inside a residual (figure 1)."""

from torch import Tensor, nn

from seq2see.layers.attention import Maybe, MultiHeadAttention
from seq2see.layers.dropout import Dropout, check_share, drop_relu
from seq2see.layers.shapes import PADDED, KeysValues, Rows, check_sequence, common_width
from seq2see.layers.trace import Trace, keep, wanted


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, at each position separately (equation 2)."""

    def __init__(self, width: int, inner: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(width, inner)
        self.dropout = check_share(dropout)
        self.contract = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = drop_relu(self.expand(x), self.dropout if self.training else 0.0)
        return self.contract(hidden)  # type: ignore[no-any-return]


class Residual(nn.Module):
    """pre: x + dropout(f(norm(x))); post: norm(x + dropout(f(x))), the paper's (section 5.4)."""

    def __init__(self, width: int, dropout: float, norm: str) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"norm is {norm!r}; it must be 'pre' or 'post'")
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, output: Tensor) -> Tensor:
        x = x + self.dropout(output)
        return x if self.pre else self.norm(x)


class Layer(nn.Module):
    """The sublayers that encoder and decoder layers share."""

    self_attention: MultiHeadAttention
    feed_forward: FeedForward
    self_residual: Residual
    feed_forward_residual: Residual

    def attend_to_self(
        self, x: Tensor, mask: Maybe, trace: Trace | None, cache: KeysValues | None, rows: Rows
    ) -> Tensor:
        """Apply self-attention to x, the positions after those in the `cache`, if there is one."""
        check_sequence("x", x, self.self_attention.query.in_features, rows)
        y = self.self_residual.before(x)
        need = wanted(trace)
        y, weights = self.self_attention(y, y, y, mask, cache=cache, rows=rows, need_weights=need)
        keep(trace, "self", weights)
        return self.self_residual.after(x, y)

    def transform(self, x: Tensor) -> Tensor:
        """Apply the feed-forward network."""
        y = self.feed_forward(self.feed_forward_residual.before(x))
        return self.feed_forward_residual.after(x, y)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward (section 3.1)."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        dropout: float = 0.0,
        norm: str = "pre",
    ) -> None:
        super().__init__()
        width = common_width(self_attention.output, feed_forward.contract)
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.self_residual = Residual(width, dropout, norm)
        self.feed_forward_residual = Residual(width, dropout, norm)

    def forward(
        self,
        x: Tensor,
        mask: Maybe = None,
        trace: Trace | None = None,
        *,
        cache: KeysValues | None = None,
        rows: Rows = PADDED,
    ) -> Tensor:
        """x (B, S, D) → (B, S, D)."""
        return self.transform(self.attend_to_self(x, mask, trace, cache, rows))


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the memory, then feed-forward (section 3.1)."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        dropout: float = 0.0,
        norm: str = "pre",
    ) -> None:
        super().__init__()
        width = common_width(self_attention.output, cross_attention.output, feed_forward.contract)
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_residual = Residual(width, dropout, norm)
        self.cross_residual = Residual(width, dropout, norm)
        self.feed_forward_residual = Residual(width, dropout, norm)

    def forward(
        self,
        x: Tensor,
        memory: KeysValues,
        mask: Maybe = None,
        trace: Trace | None = None,
        *,
        cache: KeysValues | None = None,
        rows: Rows = PADDED,
    ) -> Tensor:
        """x (B, T, D) → (B, T, D); `memory` holds the keys and values of the cross-attention."""
        x = self.attend_to_self(x, mask, trace, cache, rows)
        y = self.cross_residual.before(x)
        y, weights = self.cross_attention(y, memory, rows=rows, need_weights=wanted(trace))
        keep(trace, "cross", weights)
        return self.transform(self.cross_residual.after(x, y))
