"""Masks: bool tensors, True = may attend, broadcastable to (B, H, T, S)."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """Every position may attend to the real tokens of its own sentence, never to padding."""
    return (ids != pad)[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(targets: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Position t may attend to positions up to t (section 3.2.3); the last of `targets` sees all of `keys`."""
    keys = targets if keys is None else keys
    if keys < targets:
        raise ValueError(f"keys ({keys}) must be at least targets ({targets})")
    return torch.ones(targets, keys, dtype=torch.bool, device=device).tril(keys - targets)  # (T, S)


def combine(*masks: Tensor | None) -> Tensor | None:
    """Attend where every mask allows it; None allows everything."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    combined = given[0]
    for mask in given[1:]:
        combined = combined & mask
    return combined
