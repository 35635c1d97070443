"""Rows of states: their layout, cached keys and values, and checks of their shapes."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


class Rows:
    """Padded rows: x is (B, T, D), with one row for every position, padding included."""

    dims = 3

    def __init__(self, real: Tensor | None = None) -> None:
        """Take `real` (B, T), False at padding, as every layout does; this one keeps padding."""

    def gather(self, x: Tensor) -> Tensor:
        """Lay out embedded tokens (B, T, D)."""
        return x

    def pad(self, x: Tensor) -> Tensor:
        """Undo `gather`: (B, T, D), with zeros at padding."""
        return x

    def split(self, x: Tensor, heads: int, sentences: int) -> Tensor:
        """(B, T, H · K) → (B, H, T, K); the hypotheses of a sentence share a row."""
        length = x.shape[1] * (len(x) // sentences if sentences else 1)
        return x.reshape(sentences, length, heads, x.shape[2] // heads).transpose(1, 2)

    def join(self, x: Tensor, like: Tensor) -> Tensor:
        """(B, H, T, K) → (B, T, H · K), the inverse of `split` for the rows of `like`."""
        return x.transpose(1, 2).reshape(*like.shape[:-1], x.shape[1] * x.shape[3])


PADDED = Rows()
Layout = type[Rows]


@dataclass
class KeysValues:
    """Projected keys and values (B, H, S, K): of the memory, or of the positions read so far."""

    keys: Tensor
    values: Tensor
    mask: Tensor | None = None  # (B, 1, 1, S) of the memory, True = may attend
    bias: Tensor | None = None  # (B, 1, 1, S) added to the scores

    def extend(self, later: "KeysValues") -> "KeysValues":
        """Append later positions, in place."""
        self.keys = torch.cat([self.keys, later.keys], dim=2)
        self.values = torch.cat([self.values, later.values], dim=2)
        return self

    def select(self, rows: Tensor) -> "KeysValues":
        """Keep, repeat or reorder sentences."""
        mask = None if self.mask is None else self.mask.index_select(0, rows)
        bias = None if self.bias is None else self.bias.index_select(0, rows)
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return KeysValues(keys, values, mask, bias)


def check_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None
) -> None:
    """Check query (..., T, Kq), key (..., S, Kk), value (..., S, Kv), mask and bias (..., T, S)."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (..., length, size)")
    keys, values = key.shape[-2], value.shape[-2]
    if keys != values:
        raise ValueError(f"key has {keys} positions and value {values}; they must be equal")
    leads = [tuple(x.shape[:-2]) for x in (query, key, value)]
    lead = leads[0] if leads[0] == leads[1] == leads[2] else _broadcast(*leads)
    if lead is None:
        shapes = "{}, {} and {}".format(*leads)
        raise ValueError(f"query, key and value are for {shapes} sentences and heads")
    if not query.dtype == key.dtype == value.dtype:
        types = f"{query.dtype}, {key.dtype} and {value.dtype}"
        raise TypeError(f"query, key and value have dtypes {types}")
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; it must be bool, True = may attend")
    if bias is not None and bias.dtype != query.dtype:
        raise TypeError(f"bias has dtype {bias.dtype}; it must be the query's {query.dtype}")
    scores = (*lead, query.shape[-2], key.shape[-2])
    for name, added in (("mask", mask), ("bias", bias)):
        if added is not None and not _fits(added, scores):
            rule = f"it must broadcast to (..., T, S) = {scores}"
            raise ValueError(f"{name} has shape {tuple(added.shape)}; {rule}")


def check_product(query: Tensor, key: Tensor) -> None:
    """Check that ⟨q, k⟩ exists."""
    sizes = query.shape[-1], key.shape[-1]
    if sizes[0] != sizes[1]:
        rule = "their product needs equal sizes"
        raise ValueError(f"query has size {sizes[0]} and key {sizes[1]}; {rule}")


def check_sequence(name: str, x: Tensor, width: int, rows: Rows = PADDED) -> None:
    """Check the input of a layer."""
    if x.dim() != rows.dims or x.shape[-1] != width:
        form = f"(batch, length, {width})" if rows.dims == 3 else f"(tokens, {width})"
        raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be {form}")


def head_size(
    width: int, heads: int, inner: int | None, key_width: int | None, value_width: int | None
) -> int:
    """Divide `inner`, by default `width`, evenly among the heads."""
    widths = (("key_width", key_width), ("value_width", value_width))
    for name, size in (("width", width), ("heads", heads), ("inner", inner), *widths):
        if size is not None and size < 1:
            raise ValueError(f"{name} ({size}) must be at least 1")
    name, whole = ("width", width) if inner is None else ("inner", inner)
    if whole % heads:
        raise ValueError(f"{name} ({whole}) must be divisible by heads ({heads})")
    return whole // heads


def common_width(*last: nn.Linear) -> int:
    """Check that the sublayers of a layer share one output width, and return it."""
    widths = tuple(linear.out_features for linear in last)
    if len(set(widths)) > 1:
        rule = "in one layer they must be equal"
        raise ValueError(f"the attentions and the feed-forward have widths {widths}; {rule}")
    return widths[0]


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _fits(x: Tensor, shape: tuple[int, ...]) -> bool:
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    return x.dim() <= len(shape) and all(size in (1, whole) for size, whole in pairs)
