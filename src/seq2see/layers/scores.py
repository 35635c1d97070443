"""Score functions: how well a query and a key fit, for every pair of them.

Those with weights of their own are modules, with one set for all or one for each of `heads`. All but the plain dot
give scores of variance one, at the start, for independent queries and keys of variance one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.layers.shapes import check_product

Score = Callable[[Tensor, Tensor], Tensor]  # under no_grad the caller overwrites what comes back

MOST_NUMBERS = 2**22  # that additive scores hold at once: 16 MB
TANH_VARIANCE = 0.394  # of tanh(x), where x has variance one


def dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩; its variance grows with the head size, which is why the paper divides (section 3.2.1)."""
    check_product(query, key)
    return query @ key.transpose(-2, -1)  # (..., T, S)


def scaled_dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩ / √d_k, with variance one for independent unit-variance queries and keys (section 3.2.1)."""
    # Scaling the query touches T × K numbers instead of the scores' T × S.
    return dot(query * query.shape[-1] ** -0.5, key)


class Bilinear(nn.Module):
    """⟨q W, k⟩ / √d_k, where queries and keys may differ in size (Luong et al., 2015: "general")."""

    def __init__(self, query_size: int, key_size: int, heads: int | None = None) -> None:
        super().__init__()
        self.weight = _matrix(query_size, key_size, heads)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot(_times(query, self.weight, "query"), key)  # (..., T, S)


class Projected(nn.Module):
    """⟨q W, k U⟩ / √d: both sides meet in a space of their own, of `inner` numbers."""

    def __init__(
        self, query_size: int, key_size: int, inner: int, heads: int | None = None
    ) -> None:
        super().__init__()
        self.query_weight = _matrix(query_size, inner, heads)
        self.key_weight = _matrix(key_size, inner, heads)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot(
            _times(query, self.query_weight, "query"), _times(key, self.key_weight, "key")
        )


class Additive(nn.Module):
    """aᵀ tanh(q W + k U): a network with one layer of `inner` numbers for each pair (Bahdanau et al., 2015).

    What it holds would grow with T × S × inner, so it goes by the row, and again for gradients.
    """

    def __init__(
        self, query_size: int, key_size: int, inner: int, heads: int | None = None
    ) -> None:
        super().__init__()
        self.query_weight = _matrix(query_size, inner, heads, variance=0.5)
        self.key_weight = _matrix(key_size, inner, heads, variance=0.5)
        shape = (inner, 1) if heads is None else (heads, 1, inner, 1)
        self.vector = nn.Parameter(torch.randn(shape) * (TANH_VARIANCE * inner) ** -0.5)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query = _times(query, self.query_weight, "query")  # (..., T, inner)
        key = _times(key, self.key_weight, "key")  # (..., S, inner)
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])  # type: ignore[no-untyped-call]
        query, key = query.expand(*lead, *query.shape[-2:]), key.expand(*lead, *key.shape[-2:])
        return _AddedFits.apply(query, key, self.vector)  # type: ignore[no-any-return, no-untyped-call]


class _AddedFits(torch.autograd.Function):
    """aᵀ tanh(q + k) of query (..., T, I), key (..., S, I) and vector (I, 1), or one (1, I, 1) for each head.

    All rows go through one piece of memory. Pieces that come and go leave holes too small for the next: 3.6 GB of them
    for 8 sentences of 512 tokens and I = 256, instead of 0.1.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, vector)
        scores = query.new_empty(*query.shape[:-1], key.shape[-2])  # (..., T, S)
        for rows, pairs in _AddedFits.by_rows(query, key):
            scores[..., rows, :] = (pairs @ vector).squeeze(-1)
        return scores

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, vector = ctx.saved_tensors
        query_slope, key_slope, vector_slope = (
            torch.zeros_like(x).contiguous() for x in (query, key, vector)
        )
        for rows, pairs in _AddedFits.by_rows(query, key):
            slope = slopes[0][..., rows, :, None]  # (..., t, S, 1)
            vector_slope += (pairs.transpose(-2, -1) @ slope).sum_to_size(vector.shape)
            pairs.square_().neg_().add_(1.0).mul_(
                slope
            )  # tanh' = 1 − tanh²; the vector follows after the sums
            query_slope[..., rows, :] = pairs.sum(-2)
            key_slope += pairs.sum(-3)
        across = vector.squeeze(-1)  # (I), or (H, 1, I)
        return query_slope * across, key_slope * across, vector_slope

    @staticmethod
    def by_rows(query: Tensor, key: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """tanh(q + k) (..., t, S, I) of as many rows as MOST_NUMBERS allows; what comes next overwrites it."""
        length = query.shape[-2]
        at_once = min(length, max(1, MOST_NUMBERS // max(1, key.numel())))
        held = query.new_empty(*query.shape[:-2], at_once, *key.shape[-2:])
        for start in range(0, length, max(1, at_once)):
            rows = slice(start, min(length, start + at_once))
            pairs = held[..., : rows.stop - start, :, :]
            yield (
                rows,
                torch.add(query[..., rows, None, :], key[..., None, :, :], out=pairs).tanh_(),
            )


def _matrix(size: int, inner: int, heads: int | None, variance: float = 1.0) -> nn.Parameter:
    """One that turns numbers of variance one into numbers of `variance`."""
    shape = (size, inner) if heads is None else (heads, size, inner)
    return nn.Parameter(torch.randn(shape) * (variance / size) ** 0.5)


def _times(x: Tensor, weight: Tensor, name: str) -> Tensor:
    if x.shape[-1] != weight.shape[-2]:
        raise ValueError(
            f"{name} has size {x.shape[-1]}; this score was made for {weight.shape[-2]}"
        )
    if weight.dim() == 3 and (x.dim() < 3 or x.shape[-3] != len(weight)):
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; this score was made for {len(weight)} heads"
        )
    return x @ weight


# By name, for heads of one size. `unscaled` is the plain dot whose queries begin smaller: see MultiHeadAttention.
SCORES: dict[str, Callable[[int, int], Score]] = {
    "scaled_dot": lambda size, heads: scaled_dot,
    "dot": lambda size, heads: dot,
    "unscaled": lambda size, heads: dot,
    "bilinear": lambda size, heads: Bilinear(size, size, heads),
    "projected": lambda size, heads: Projected(size, size, size, heads),
    "additive": lambda size, heads: Additive(size, size, size, heads),
}
