"""Positions: attention alone does not know the order of its input (section 3.5)."""

import math

import torch
from torch import Tensor, nn

from seq2see.layers.shapes import check_start


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
        """The encodings of the T positions from `start`, in the type and on the device of `like` (..., T, D)."""
        check_start(start)
        end, table = (
            start + like.shape[-2],
            self.table,
        )  # another thread may put a shorter one in its place
        if end > len(table) or table.dtype != like.dtype or table.device != like.device:
            with torch.inference_mode(False):  # kept, so that training may multiply by it
                self.table = table = sinusoidal(max(end, 2 * len(table)), like.shape[-1]).to(like)
        return table[start:end]  # (T, D)


class LearnedPositions(nn.Module):
    """A vector for each of the first `length` positions, learned like a word's (table 3, row E)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(length, width)

    def forward(self, start: int, like: Tensor) -> Tensor:
        """The vectors of the T positions from `start`, for `like` (B, T, D)."""
        end, length, width = (
            start + like.shape[-2],
            self.embedding.num_embeddings,
            self.embedding.embedding_dim,
        )
        if end > length:
            raise ValueError(f"a sentence has {end} positions; {length} were learned")
        return self.embedding.weight[start:end] * math.sqrt(width)  # (T, D)


def rotate(x: Tensor, encodings: Tensor) -> Tensor:
    """Turn each pair of numbers of x (..., T, K) by its position's angle: rotary positions (Su et al., 2021).

    ⟨rotate(q, PE(t)), rotate(k, PE(s))⟩ depends on t and s through t − s alone.
    """
    sine, cosine = encodings[:, 0::2], encodings[:, 1::2]  # (T, K/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(
        -2
    )  # (..., T, K)
