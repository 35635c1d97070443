"""Patterns of attention beyond the Transformer's own: window, prefix, any order, packed rows."""

import torch
from torch import Tensor

from seq2see.layers.masks import Device, causal_mask


def window_mask(targets: int, reach: int, keys: int | None = None, device: Device = None) -> Tensor:
    """Let positions attend at most `reach` away: restricted self-attention (section 4, table 1)."""
    keys = targets if keys is None else keys
    if reach < 0 or keys < targets:
        raise ValueError(f"reach ({reach}) must be ≥ 0, keys ({keys}) ≥ targets ({targets})")
    past = keys - targets
    full = torch.ones(targets, keys, dtype=torch.bool, device=device)
    return full.tril(past + reach).triu(past - reach)  # (T, S)


def prefix_mask(prefix: int, length: int, device: Device = None) -> Tensor:
    """Let every position attend to the first `prefix` ones; the rest is causal."""
    if not 0 <= prefix <= length:
        raise ValueError(f"prefix ({prefix}) must be between 0 and length ({length})")
    return causal_mask(length, device=device) | (torch.arange(length, device=device) < prefix)


def order_mask(order: Tensor) -> Tensor:
    """Let position order[i] attend to order[0 … i]: causal in any order of the positions."""
    if not torch.equal(order.sort().values, torch.arange(len(order), device=order.device)):
        raise ValueError(f"order {order.tolist()} must hold each of 0 … {len(order) - 1} once")
    place = order.argsort()
    return place[None, :] <= place[:, None]  # (S, S)


def packed_mask(sentence: Tensor) -> Tensor:
    """Keep several sentences of one row apart; `sentence` (B, S) numbers them."""
    return (sentence[:, :, None] == sentence[:, None, :])[:, None]  # (B, 1, S, S)
