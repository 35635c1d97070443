"""Positions: attention alone does not know the order of its input (section 3.5)."""

import torch
from torch import Tensor


def sinusoidal(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)) (section 3.5)."""
    if width % 2:
        raise ValueError(f"width ({width}) must be even: each sine has its cosine")
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = position * rate  # (T, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (T, D)


class Positions:
    """Sinusoidal encodings of any length, computed once and extended when a longer sentence comes.

    Not a module: nothing is learned, so nothing belongs into the weights file.
    """

    def __init__(self, width: int) -> None:
        self.table = sinusoidal(0, width)

    def __call__(self, start: int, like: Tensor) -> Tensor:
        """The encodings of the T positions from `start`, in the type and on the device of `like` (B, T, D)."""
        end = start + like.shape[1]
        if end > len(self.table) or self.table.dtype != like.dtype or self.table.device != like.device:
            self.table = sinusoidal(max(end, 2 * len(self.table)), like.shape[2]).to(like)
        return self.table[start:end]  # (T, D)
