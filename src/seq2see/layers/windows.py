"""Self-attention that looks at a neighbourhood only, and computes nothing but that.

Shapes: S positions, K head size; N blocks of L positions, each with W = L + 2 · reach positions to look at.
"""

import torch
from torch import Tensor
from torch.nn import functional

from seq2see.layers.attention import attend
from seq2see.layers.scores import Score, scaled_dot
from seq2see.layers.shapes import check_attention

BLOCK = 32  # positions at least: smaller blocks save places, and lose more time between their small products


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
    """What `attend` gives under `window_mask`, in O(S · reach): restricted self-attention (section 4, table 1).

    query, key and value (..., S, K); mask, the same for all queries, broadcasts to (..., 1, S), as `padding_mask` does.
    The weights are (..., S, 2 · reach + 1): those of position t for t − reach … t + reach, zero beyond the ends.
    """
    _check(query, key, value, reach, mask)
    length, dims = query.shape[-2], max(x.dim() for x in (query, key, value))
    near = min(reach, max(0, length - 1))  # further away there is nothing
    size = max(1, min(length, max(near, BLOCK)))  # L
    fill = max(1, -(-length // size)) * size - length  # up to whole blocks
    real = torch.ones(1, length, dtype=torch.bool, device=query.device)
    real = real if mask is None else real & mask  # (..., 1, S)
    query, key, value, real = (x[(None,) * (dims - x.dim())] for x in (query, key, value, real))
    # Blocks stand before sentences and heads: the heads stay where scores with weights for each of them look.
    query = torch.unflatten(functional.pad(query, (0, 0, 0, fill)), -2, (-1, size)).movedim(
        -3, 0
    )  # (N, ..., L, K)
    key, value = (_neighbours(x, near, size, fill) for x in (key, value))  # (N, ..., W, K)
    real = _neighbours(real.transpose(-2, -1), near, size, fill).transpose(-2, -1)  # (N, ..., 1, W)
    band = (
        real.new_ones(size, size + 2 * near).triu().tril(2 * near)
    )  # (L, W): the first looks at the first 2R + 1
    output, weights = attend(query, key, value, real & band, score=score, need_weights=need_weights)
    if weights is not None:
        places = (
            torch.arange(2 * near + 1, device=band.device)
            + torch.arange(size, device=band.device)[:, None]
        )
        weights = weights.gather(
            -1, places.expand(*weights.shape[:-1], -1)
        )  # (N, ..., L, 2 · near + 1)
        weights = functional.pad(_joined(weights, length), (reach - near, reach - near))
    return _joined(output, length), weights


def _neighbours(x: Tensor, near: int, size: int, fill: int) -> Tensor:
    """For each block of x (..., S, K) the block and what is near it: (N, ..., W, K), zeros beyond the ends."""
    padded = functional.pad(x, (0, 0, near, near + fill))
    return padded.unfold(-2, size + 2 * near, size).movedim(-3, 0).transpose(-2, -1)


def _joined(blocks: Tensor, length: int) -> Tensor:
    return blocks.movedim(0, -3).flatten(-3, -2)[..., :length, :]  # (..., S, K)


def _check(query: Tensor, key: Tensor, value: Tensor, reach: int, mask: Tensor | None) -> None:
    check_attention(query, key, value, mask, None)
    if query.shape[-2] != key.shape[-2]:
        counts = f"query has {query.shape[-2]} positions and key {key.shape[-2]}"
        raise ValueError(f"{counts}; a window slides over one sequence")
    if reach < 0:
        raise ValueError(f"reach ({reach}) must be at least 0")
    if mask is not None and mask.dim() > 1 and mask.shape[-2] != 1:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; it must be the same for all queries: (..., 1, S)"
        )
