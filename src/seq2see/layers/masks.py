"""Masks: bool tensors, True = may attend, broadcastable to (B, H, T, S)."""

from functools import reduce
from operator import and_

import torch
from torch import Tensor

Device = torch.device | None


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """Let every query position attend to the real tokens of its own sentence."""
    return (ids != pad)[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(targets: int, keys: int | None = None, device: Device = None) -> Tensor:
    """Let position t attend to positions up to t (section 3.2.3); the last one sees all `keys`."""
    keys = targets if keys is None else keys
    if keys < targets:
        raise ValueError(f"keys ({keys}) must be at least targets ({targets})")
    return torch.ones(targets, keys, dtype=torch.bool, device=device).tril(keys - targets)  # (T, S)


def combine(*masks: Tensor | None) -> Tensor | None:
    """Attend where every mask allows it; None allows everything."""
    given = [mask for mask in masks if mask is not None]
    return reduce(and_, given) if given else None
