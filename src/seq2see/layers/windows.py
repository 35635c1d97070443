"""Restricted self-attention: each position attends to a window, and only windows are computed.

Shapes: S positions, K head size; N blocks of L query positions, each with W = L + 2 · near keys.
"""

import torch
from torch import Tensor
from torch.nn import functional

from seq2see.layers.attention import attend
from seq2see.layers.scores import Score, scaled_dot
from seq2see.layers.shapes import check_attention

BLOCK = 32  # minimum block length: shorter blocks waste fewer keys, but lose more time per product


def attend_window(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    reach: int,
    mask: Tensor | None = None,
    *,
    score: Score = scaled_dot,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """`attend` under `window_mask`, in O(S · reach) instead of O(S²) (section 4, table 1).

    query, key and value are (..., S, K). The mask, which is the same for all queries, broadcasts to
    (..., 1, S), like that of `padding_mask`. The weights are (..., S, 2 · reach + 1): row t holds
    those of positions t − reach … t + reach, with zeros beyond both ends.
    """
    _check(query, key, value, reach, mask)
    length = query.shape[-2]
    near = min(reach, max(0, length - 1))  # no key is further away
    size = max(1, min(length, max(near, BLOCK)))  # L
    fill = max(1, -(-length // size)) * size - length  # padding that completes the last block
    real = torch.ones(1, length, dtype=torch.bool, device=query.device)
    if mask is not None:
        real = real & mask  # (..., 1, S)
    dims = max(x.dim() for x in (query, key, value))
    query, key, value, real = (x[(None,) * (dims - x.dim())] for x in (query, key, value, real))
    # Blocks come first, so that the head axis stays where scores with weights per head expect it.
    query = functional.pad(query, (0, 0, 0, fill))
    query = torch.unflatten(query, -2, (-1, size)).movedim(-3, 0)  # (N, ..., L, K)
    key = _windows(key, near, size, fill)  # (N, ..., W, K)
    value = _windows(value, near, size, fill)  # (N, ..., W, K)
    real = _windows(real.transpose(-2, -1), near, size, fill).transpose(-2, -1)  # (N, ..., 1, W)
    band = real.new_ones(size, size + 2 * near).triu().tril(2 * near)  # (L, W)
    output, weights = attend(query, key, value, real & band, score=score, need_weights=need_weights)
    if weights is not None:
        offsets = torch.arange(2 * near + 1, device=band.device)
        columns = offsets + torch.arange(size, device=band.device)[:, None]  # (L, 2 · near + 1)
        weights = weights.gather(-1, columns.expand(*weights.shape[:-1], -1))
        weights = functional.pad(_join(weights, length), (reach - near, reach - near))
    return _join(output, length), weights


def _windows(x: Tensor, near: int, size: int, fill: int) -> Tensor:
    """The window around each block of x (..., S, K): (N, ..., W, K), zeros beyond both ends."""
    padded = functional.pad(x, (0, 0, near, near + fill))
    return padded.unfold(-2, size + 2 * near, size).movedim(-3, 0).transpose(-2, -1)


def _join(blocks: Tensor, length: int) -> Tensor:
    return blocks.movedim(0, -3).flatten(-3, -2)[..., :length, :]  # (..., S, K)


def _check(query: Tensor, key: Tensor, value: Tensor, reach: int, mask: Tensor | None) -> None:
    check_attention(query, key, value, mask, None)
    if query.shape[-2] != key.shape[-2]:
        counts = f"query has {query.shape[-2]} positions and key {key.shape[-2]}"
        raise ValueError(f"{counts}; a window needs queries and keys of one sequence")
    if reach < 0:
        raise ValueError(f"reach ({reach}) must be at least 0")
    if mask is not None and mask.dim() > 1 and mask.shape[-2] != 1:
        rule = "it must be the same for all queries: (..., 1, S)"
        raise ValueError(f"mask has shape {tuple(mask.shape)}; {rule}")
