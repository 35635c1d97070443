"""The layers of encoder and decoder: attention and feed-forward, each inside a residual (figure 1)."""

import torch
from torch import Tensor, nn

from seq2see.layers.attention import KeysValues, Maybe, MultiHeadAttention
from seq2see.layers.dropout import Dropout, check_share, drop_relu
from seq2see.layers.shapes import check_sequence, common_width
from seq2see.layers.trace import Trace, keep, wanted


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, at every position alike (equation 2)."""

    def __init__(self, width: int, inner: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(width, inner)
        self.dropout = check_share(dropout)
        self.contract = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(drop_relu(self.expand(x), self.dropout if self.training else 0.0))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """pre: x + dropout(f(norm(x))); post: norm(x + dropout(f(x))), as in the paper (section 5.4).

    `before` prepares the input of f, `after` joins its output, so that f is free to return more than a tensor.
    """

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
    """What both kinds of layers begin and end with: a sequence that looks at itself, and a feed-forward."""

    self_attention: MultiHeadAttention
    feed_forward: FeedForward
    self_residual: Residual
    feed_forward_residual: Residual

    def look(
        self,
        x: Tensor,
        past: KeysValues | None,
        mask: Maybe,
        *,
        bias: Maybe = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, KeysValues, Maybe]:
        """The new positions x (B, T, D) look at `past` and themselves: x after it, the past grown by T, the weights."""
        check_sequence("x", x, self.self_attention.query.in_features)
        y = self.self_residual.before(x)
        pair = self.self_attention.keys_values(y, y, 0 if past is None else past[0].shape[2])
        if past is not None:
            pair = torch.cat([past[0], pair[0]], dim=2), torch.cat([past[1], pair[1]], dim=2)
        y, weights = self.self_attention.look(y, pair, mask, bias=bias, need_weights=need_weights)
        return self.self_residual.after(x, y), pair, weights

    def transform(self, x: Tensor) -> Tensor:
        y = self.feed_forward(self.feed_forward_residual.before(x))
        return self.feed_forward_residual.after(x, y)  # (B, T, D)


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

    def forward(self, x: Tensor, mask: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        x, _, weights = self.look(x, None, mask, need_weights=wanted(trace))
        keep(trace, "self", weights)
        return self.transform(x)  # (B, S, D)


class DecoderLayer(Layer):
    """Masked self-attention, attention to the memory, then feed-forward (section 3.1)."""

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
        past: KeysValues | None = None,
        *,
        mask: Maybe = None,
        memory_mask: Maybe = None,
        memory_bias: Maybe = None,
        trace: Trace | None = None,
    ) -> tuple[Tensor, KeysValues]:
        """The new positions x (B, T, D) look at `past` and themselves, then at `memory`, both as keys and values.

        Returns the layer's output and the past grown by T positions.
        """
        x, past, weights = self.look(x, past, mask, need_weights=wanted(trace))
        keep(trace, "self", weights)
        y = self.cross_residual.before(x)
        sentences = len(memory[0])  # all hypotheses of one look at the same memory
        y = y.reshape(sentences, len(y) // max(1, sentences) * y.shape[1], y.shape[2])
        y, weights = self.cross_attention.look(
            y, memory, memory_mask, bias=memory_bias, need_weights=wanted(trace)
        )
        keep(trace, "cross", weights)
        return self.transform(self.cross_residual.after(x, y.view_as(x))), past  # (B, T, D)
