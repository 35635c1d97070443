"""The Transformer's logits in training, without work on padding: an eighth less to compute in a mixed batch.

Only attention needs the sentences side by side; all else acts on one position at a time, and here on the real ones
alone. A test holds the logits and their gradients to those of `model(batch)`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.masks import causal_mask, padding_mask
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


def _spread(x: Tensor, rows: Tensor, count: int) -> Tensor:
    return x.new_zeros(count, *x.shape[1:]).index_copy(0, rows, x)


class Places:
    """Where the real tokens of padded ids (B, T) are."""

    def __init__(self, ids: Tensor) -> None:
        self.shape, self.real = ids.shape, (ids != PAD).flatten().nonzero()[:, 0]
        self.no_padding = len(self.real) == ids.numel()

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, D) → (N, D), one real token after the other."""
        rows = x.flatten(0, 1)
        return rows if self.no_padding else _Pick.apply(rows, self.real)  # type: ignore[no-untyped-call]

    def unpack(self, x: Tensor) -> Tensor:
        """(N, D) → (B, T, D), zero at padding."""
        rows = x if self.no_padding else _spread(x, self.real, self.shape.numel())
        return torch.unflatten(rows, 0, self.shape)


def logits_and_targets(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """The logits (N, V) at the N real target tokens, and these tokens."""
    target = Places(batch.target_out)
    logits = _logits(model, batch, target) if isinstance(model, Transformer) else target.pack(model(batch))
    return logits, batch.target_out.flatten().index_select(0, target.real)


def _logits(model: Transformer, batch: Batch, target: Places) -> Tensor:
    source, mask = Places(batch.source), padding_mask(batch.source, PAD)
    x = source.pack(model.embed(model.source_embedding, model.source_positions, batch.source))
    for layer in model.encoder:
        y = layer.self_residual.before(x)
        x = layer.self_residual.after(x, _look(layer.self_attention, y, source, y, source, mask))
        x = layer.feed_forward_residual.after(x, layer.feed_forward(layer.feed_forward_residual.before(x)))
    memory = model.encoder_norm(x)
    x = target.pack(model.embed(model.target_embedding, model.target_positions, batch.target_in))
    causal = causal_mask(target.shape[1], device=x.device)
    for layer in model.decoder:
        y = layer.self_residual.before(x)
        x = layer.self_residual.after(x, _look(layer.self_attention, y, target, y, target, causal))
        y = layer.cross_residual.before(x)
        x = layer.cross_residual.after(x, _look(layer.cross_attention, y, target, memory, source, mask))
        x = layer.feed_forward_residual.after(x, layer.feed_forward(layer.feed_forward_residual.before(x)))
    return model.output(model.decoder_norm(x))  # type: ignore[no-any-return]


def _look(
    attention: MultiHeadAttention, x: Tensor, places: Places, memory: Tensor, there: Places, mask: Tensor
) -> Tensor:
    """What `attention(x, memory, memory, mask)` gives, for packed x and memory."""

    def heads(projection: nn.Linear, tokens: Tensor, where: Places) -> Tensor:
        projected = where.unpack(projection(tokens))  # (B, T, H × K)
        return torch.unflatten(projected, -1, (attention.heads, -1)).transpose(1, 2)  # (B, H, T, K)

    query = attention.turn(heads(attention.query, x, places), 0)
    key, value = attention.turn(heads(attention.key, memory, there), 0), heads(attention.value, memory, there)
    dropout = attention.dropout if attention.training else 0.0
    found, _ = attend(query, key, value, mask, score=attention.score, dropout=dropout, need_weights=False)
    return attention.output(places.pack(found.transpose(1, 2).flatten(2)))  # type: ignore[no-any-return]
