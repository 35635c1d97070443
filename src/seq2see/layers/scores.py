"""Score functions of query–key pairs; all but `dot` map unit variance to unit variance."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.layers.shapes import check_product

Score = Callable[[Tensor, Tensor], Tensor]
BUFFER_SIZE = 2**22  # values of tanh(q + k) that additive scores hold in memory: 16 MB


def dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩, whose variance grows with the head size (section 3.2.1)."""
    check_product(query, key)
    return query @ key.transpose(-2, -1)  # (..., T, S)


def scaled_dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩ / √d_k (section 3.2.1)."""
    return dot(query * query.shape[-1] ** -0.5, key)  # cheaper than scaling all T × S scores


class Bilinear(nn.Module):
    """⟨q W, k⟩ / √d_k for queries and keys of any two sizes (Luong et al., 2015: "general")."""

    def __init__(self, query_size: int, key_size: int, heads: int | None = None) -> None:
        super().__init__()
        self.weight = _matrix(query_size, key_size, heads)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot(_project(query, self.weight, "query"), key)  # (..., T, S)


class Projected(nn.Module):
    """⟨q W, k U⟩ / √inner: queries and keys are projected into a shared space of size `inner`."""

    def __init__(self, query_size: int, key_size: int, inner: int, heads: int | None = None):
        super().__init__()
        self.query_weight = _matrix(query_size, inner, heads)
        self.key_weight = _matrix(key_size, inner, heads)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query = _project(query, self.query_weight, "query")  # (..., T, inner)
        return scaled_dot(query, _project(key, self.key_weight, "key"))  # (..., T, S)


class Additive(nn.Module):
    """aᵀ tanh(q W + k U): one hidden layer of size `inner` per pair (Bahdanau et al., 2015)."""

    def __init__(self, query_size: int, key_size: int, inner: int, heads: int | None = None):
        super().__init__()
        self.query_weight = _matrix(query_size, inner, heads, variance=0.5)
        self.key_weight = _matrix(key_size, inner, heads, variance=0.5)
        shape = (inner, 1) if heads is None else (heads, 1, inner, 1)
        self.vector = nn.Parameter(torch.randn(shape) * (0.394 * inner) ** -0.5)  # Var tanh: 0.394

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        q = _project(query, self.query_weight, "query")  # (..., T, inner)
        k = _project(key, self.key_weight, "key")  # (..., S, inner)
        lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # type: ignore[no-untyped-call]
        pair = q.expand(*lead, -1, -1), k.expand(*lead, -1, -1)
        return _TanhSum.apply(*pair, self.vector)  # type: ignore[no-any-return, no-untyped-call]


class _TanhSum(torch.autograd.Function):
    """aᵀ tanh(q + k) for query (..., T, I), key (..., S, I), vector (I, 1) or (H, 1, I, 1)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, vector)
        scores = query.new_empty(*query.shape[:-1], key.shape[-2])  # (..., T, S)
        for rows, hidden in _hidden_blocks(query, key):
            scores[..., rows, :] = (hidden @ vector).squeeze(-1)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        query, key, vector = ctx.saved_tensors
        by_query, by_key, by_vector = (x.new_zeros(x.shape) for x in (query, key, vector))
        for rows, hidden in _hidden_blocks(query, key):
            gradient = gradients[0][..., rows, :, None]  # (..., t, S, 1)
            by_vector += (hidden.transpose(-2, -1) @ gradient).sum_to_size(vector.shape)
            hidden.square_().neg_().add_(1.0).mul_(gradient)  # tanh' = 1 − tanh²
            by_query[..., rows, :] = hidden.sum(-2)
            by_key += hidden.sum(-3)
        return by_query * vector[..., 0], by_key * vector[..., 0], by_vector


def _hidden_blocks(query: Tensor, key: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of rows and their tanh(q + k) (..., t, S, I), recomputed for the gradient."""
    size = max(1, min(query.shape[-2], BUFFER_SIZE // max(1, key.numel())))
    # One buffer for all: fresh memory per block took 3.6 GB instead of 0.1 for 8 × 512 tokens.
    buffer = query.new_empty(*query.shape[:-2], size, *key.shape[-2:])
    for start in range(0, query.shape[-2], size):
        rows = slice(start, start + size)
        hidden = buffer[..., : query.shape[-2] - start, :, :]
        yield rows, torch.add(query[..., rows, None, :], key[..., None, :, :], out=hidden).tanh_()


def _matrix(size: int, inner: int, heads: int | None, variance: float = 1.0) -> nn.Parameter:
    """A random matrix that maps inputs of variance one to outputs of variance `variance`."""
    shape = (size, inner) if heads is None else (heads, size, inner)
    return nn.Parameter(torch.randn(shape) * (variance / size) ** 0.5)


def _project(x: Tensor, weight: Tensor, name: str) -> Tensor:
    shape, size = tuple(x.shape), weight.shape[-2]
    if shape[-1] != size:
        raise ValueError(f"{name} has size {shape[-1]}; this score was made for {size}")
    if weight.dim() == 3 and (x.dim() < 3 or shape[-3] != len(weight)):
        raise ValueError(f"{name} has shape {shape}; this score was made for {len(weight)} heads")
    return x @ weight


SCORES: dict[str, Callable[[int, int], Score]] = {
    "scaled_dot": lambda size, heads: scaled_dot,
    "dot": lambda size, heads: dot,
    "unscaled": lambda size, heads: dot,  # MultiHeadAttention starts it with smaller queries
    "bilinear": lambda size, heads: Bilinear(size, size, heads),
    "projected": lambda size, heads: Projected(size, size, size, heads),
    "additive": lambda size, heads: Additive(size, size, size, heads),
}
