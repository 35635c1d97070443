"""What fits together: every wrong shape, type or size is one line with its name, its value and the rule."""

import torch
from torch import Tensor, nn


def check_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None
) -> None:
    """query (..., T, Kq), key (..., S, Kk), value (..., S, Kv); mask bool; mask and bias broadcast to (..., T, S)."""
    for name, given in (("query", query), ("key", key), ("value", value)):
        if given.dim() < 2:
            raise ValueError(
                f"{name} has shape {tuple(given.shape)}; it must be (..., length, size)"
            )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has {key.shape[-2]} positions and value {value.shape[-2]}; they must be equal"
        )
    leads = [tuple(given.shape[:-2]) for given in (query, key, value)]
    lead = leads[0] if leads[0] == leads[1] == leads[2] else _broadcast(*leads)
    if lead is None:
        raise ValueError(
            "query, key and value are for {}, {} and {} sentences and heads".format(*leads)
        )
    if not query.dtype == key.dtype == value.dtype:
        raise TypeError(
            f"query, key and value have dtypes {query.dtype}, {key.dtype} and {value.dtype}"
        )
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; it must be bool, True = may attend")
    if bias is not None and bias.dtype != query.dtype:
        raise TypeError(f"bias has dtype {bias.dtype}; it must be the query's {query.dtype}")
    places = (*lead, query.shape[-2], key.shape[-2])
    for name, added in (("mask", mask), ("bias", bias)):
        if added is not None and not _fits(added, places):
            raise ValueError(
                f"{name} has shape {tuple(added.shape)}; it must broadcast to (..., T, S) = {places}"
            )


def check_product(query: Tensor, key: Tensor) -> None:
    """⟨q, k⟩ needs vectors of one size."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has size {query.shape[-1]} and key {key.shape[-1]}; their product needs equal ones"
        )


def check_sequence(name: str, x: Tensor, width: int) -> None:
    """What a layer takes: (batch, length, width)."""
    if x.dim() != 3 or x.shape[2] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (batch, length, {width})")


def head_size(
    width: int, heads: int, inner: int | None, key_width: int | None, value_width: int | None
) -> int:
    """The numbers of each head: those of `inner`, or else of the layer, divided evenly."""
    given = {
        "width": width,
        "heads": heads,
        "inner": inner,
        "key_width": key_width,
        "value_width": value_width,
    }
    for name, size in given.items():
        if size is not None and size < 1:
            raise ValueError(f"{name} ({size}) must be at least 1")
    name, whole = ("width", width) if inner is None else ("inner", inner)
    if whole % heads:
        raise ValueError(f"{name} ({whole}) must be divisible by heads ({heads})")
    return whole // heads


def common_width(*last: nn.Linear) -> int:
    """What the parts of a layer, which hand each other one sequence, all give."""
    widths = tuple(part.out_features for part in last)
    if len(set(widths)) > 1:
        raise ValueError(
            f"the attentions and the feed-forward have widths {widths}; in one layer they must be equal"
        )
    return widths[0]


def check_start(start: int) -> None:
    """A sequence that looks at itself, maybe with a past, has at least as many keys as queries."""
    if start < 0:
        raise ValueError(
            f"there are {-start} more queries than keys; positions are those of one sequence"
        )


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _fits(given: Tensor, places: tuple[int, ...]) -> bool:
    pairs = zip(reversed(given.shape), reversed(places), strict=False)
    return given.dim() <= len(places) and all(size in (1, place) for size, place in pairs)
