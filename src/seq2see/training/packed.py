"""The Transformer in training, without work on padding: an eighth less to compute in a mixed batch.

Only attention needs the sentences side by side; all else acts on one position at a time, and here on the real ones
alone. A test holds the logits and their gradients to those of `model(batch)`.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.trace import Trace
from seq2see.models.language import Stack
from seq2see.models.transformer import Transformer
from seq2see.text.vocab import PAD


class _Pick(torch.autograd.Function):
    """Some rows of x, none twice: going back their gradients are put in place, where index_select would add them."""

    @staticmethod
    def forward(context: Any, x: Tensor, rows: Tensor) -> Tensor:
        context.rows, context.count = rows, len(x)
        return x.index_select(0, rows)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _spread(gradients[0], context.rows, context.count), None


def _pick(x: Tensor, rows: Tensor) -> Tensor:
    return _Pick.apply(x, rows)  # type: ignore[no-untyped-call, no-any-return]


def _spread(x: Tensor, rows: Tensor, count: int) -> Tensor:
    """The rows of x at their places among `count`, zeros between them."""
    return x.new_zeros(count, x.shape[1]).index_copy_(0, rows, x)


class Places:
    """Where the N real tokens of padded ids (B, T) are, and where their parts are once each of `heads` has its own."""

    def __init__(self, ids: Tensor, heads: int) -> None:
        self.shape = (len(ids), heads, ids.shape[1])  # (B, H, T)
        self.real = (ids != PAD).flatten().nonzero()[:, 0]
        sentence, place = self.real // ids.shape[1], self.real % ids.shape[1]
        first = (
            sentence * heads * ids.shape[1] + place
        )  # of a token in (B, H, T), seen by the first head
        self.parts = (
            first[:, None] + torch.arange(heads, device=ids.device) * ids.shape[1]
        ).flatten()

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, D) → (N, D), one real token after the other."""
        return _pick(x.flatten(0, 1), self.real)

    def split(self, x: Tensor) -> Tensor:
        """(N, H × K) → (B, H, T, K), zero at padding: one copy for what is else two."""
        parts = torch.unflatten(x, 1, (self.shape[1], -1)).flatten(0, 1)  # (N × H, K)
        return torch.unflatten(_spread(parts, self.parts, math.prod(self.shape)), 0, self.shape)

    def join(self, x: Tensor) -> Tensor:
        """(B, H, T, K) → (N, H × K), without padding."""
        return torch.unflatten(_pick(x.flatten(0, 2), self.parts), 0, (-1, self.shape[1])).flatten(
            1
        )


class Answers(NamedTuple):
    """What a model says of the N real target tokens."""

    states: Tensor  # (N, D), or (N, V) if there is no `output`
    output: (
        nn.Linear | None
    )  # makes logits of the states: the largest product, so the loss sees to it
    targets: Tensor  # (N,)

    @property
    def logits(self) -> Tensor:
        return self.states if self.output is None else self.output(self.states)


def answers(model: nn.Module, batch: Batch, trace: Trace | None = None) -> Answers:
    """A forward pass at the real target tokens alone."""
    heads = model.encoder[0].self_attention.heads if isinstance(model, Transformer) else 1
    target = Places(batch.target_out, heads)
    right = batch.target_out.flatten().index_select(0, target.real)
    if (
        isinstance(model, Transformer) and model.plan is None
    ):  # with one the places of the source change
        return Answers(_states(model, batch, target), model.output, right)
    if isinstance(model, Stack):
        return Answers(target.pack(model.states(batch, trace)), model.output, right)
    return Answers(target.pack(model(batch) if trace is None else model(batch, trace)), None, right)


def _states(model: Transformer, batch: Batch, target: Places) -> Tensor:
    source, mask = Places(batch.source, target.shape[1]), padding_mask(batch.source, PAD)
    x = source.pack(model.embed(model.source_embedding, model.source_positions, batch.source))
    for layer in model.encoder:
        y = layer.self_residual.before(x)
        x = layer.self_residual.after(x, _look(layer.self_attention, y, source, y, source, mask))
        x = layer.feed_forward_residual.after(
            x, layer.feed_forward(layer.feed_forward_residual.before(x))
        )
    memory = model.encoder_norm(x)
    x = target.pack(model.embed(model.target_embedding, model.target_positions, batch.target_in))
    causal = causal_mask(target.shape[2], device=x.device)
    for layer in model.decoder:
        y = layer.self_residual.before(x)
        x = layer.self_residual.after(x, _look(layer.self_attention, y, target, y, target, causal))
        y = layer.cross_residual.before(x)
        x = layer.cross_residual.after(
            x, _look(layer.cross_attention, y, target, memory, source, mask)
        )
        x = layer.feed_forward_residual.after(
            x, layer.feed_forward(layer.feed_forward_residual.before(x))
        )
    return model.decoder_norm(x)  # type: ignore[no-any-return]


def _look(
    attention: MultiHeadAttention,
    x: Tensor,
    places: Places,
    memory: Tensor,
    there: Places,
    mask: Tensor,
) -> Tensor:
    """What `attention(x, memory, memory, mask)` gives, for packed x and memory."""

    query = attention.turn(places.split(attention.query(x)), 0)  # (B, H, T, K)
    key, value = (
        attention.turn(there.split(attention.key(memory)), 0),
        there.split(attention.value(memory)),
    )
    dropout = attention.dropout if attention.training else 0.0
    found, _ = attend(
        query, key, value, mask, score=attention.score, dropout=dropout, need_weights=False
    )
    return attention.output(places.join(found))  # type: ignore[no-any-return]
