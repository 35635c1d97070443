"""Rows without padding: the layout that makes training fast.

Only attention needs sentences side by side. Everything else acts on one position at a time, and
here on real tokens alone: an eighth less to compute in a mixed batch.
"""

from typing import Any

import torch
from torch import Tensor

from seq2see.layers.shapes import Rows


class RealRows(Rows):
    """Rows of the N real tokens alone: x is (N, D). Attention is the only part to meet padding."""

    dims = 2

    def __init__(self, real: Tensor) -> None:
        self.shape = real.shape  # (B, T)
        self.index = real.flatten().nonzero()[:, 0]
        self.heads: dict[int, Tensor] = {}  # number of heads → index of each token's heads

    def gather(self, x: Tensor) -> Tensor:
        return _gather(x.flatten(0, 1), self.index)

    def pad(self, x: Tensor) -> Tensor:
        return torch.unflatten(_scatter(x, self.index, self.shape.numel()), 0, self.shape)

    def split(self, x: Tensor, heads: int, sentences: int) -> Tensor:
        batch, length = self.shape
        parts = torch.unflatten(x, 1, (heads, -1)).flatten(0, 1)  # (N · H, K)
        padded = _scatter(parts, self._heads(heads), batch * heads * length)
        return torch.unflatten(padded, 0, (batch, heads, length))

    def join(self, x: Tensor, like: Tensor) -> Tensor:
        heads = x.shape[1]
        parts = _gather(x.flatten(0, 2), self._heads(heads))
        return torch.unflatten(parts, 0, (-1, heads)).flatten(1)  # (N, H · K)

    def _heads(self, heads: int) -> Tensor:
        """Index of every head of every token in (B, H, T)."""
        if heads not in self.heads:
            length = self.shape[1]
            first = self.index // length * heads * length + self.index % length
            step = torch.arange(heads, device=first.device) * length
            self.heads[heads] = (first[:, None] + step).flatten()
        return self.heads[heads]


class _Gather(torch.autograd.Function):
    """Distinct rows of x. Their gradients are copied back, where index_select would add them up."""

    @staticmethod
    def forward(context: Any, x: Tensor, index: Tensor) -> Tensor:
        context.index, context.count = index, len(x)
        return x.index_select(0, index)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _scatter(gradients[0], context.index, context.count), None


def _scatter(x: Tensor, index: Tensor, count: int) -> Tensor:
    """Put the rows of x at their index among `count` rows, with zeros between them."""
    return x.new_zeros(count, x.shape[1]).index_copy_(0, index, x)


def _gather(x: Tensor, index: Tensor) -> Tensor:
    return _Gather.apply(x, index)  # type: ignore[no-untyped-call, no-any-return]
