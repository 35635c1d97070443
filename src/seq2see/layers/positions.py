"""Positions: attention by itself ignores the order of its input (section 3.5)."""

import torch
from torch import Tensor, nn


def sinusoidal(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))."""
    if width % 2:
        raise ValueError(f"width ({width}) must be even: each sine has its cosine")
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = position * rate  # (T, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (T, D)


class Positions:
    """Sinusoidal encodings of any length, computed once: no module, as nothing is learned."""

    def __init__(self, width: int) -> None:
        self.table = sinusoidal(0, width)

    def __call__(self, start: int, like: Tensor) -> Tensor:
        """Encode the T positions from `start`, with the dtype and device of `like` (..., T, D)."""
        if start < 0:
            raise ValueError(f"{-start} more queries than keys; both must belong to one sequence")
        end = start + like.shape[-2]
        table = self.table  # another thread may replace it by a shorter one meanwhile
        if end > len(table) or table.dtype != like.dtype or table.device != like.device:
            with torch.inference_mode(False):  # training may multiply by the table later
                table = sinusoidal(max(end, 2 * len(table)), like.shape[-1]).to(like)
            self.table = table
        return table[start:end]  # (T, D)


class LearnedPositions(nn.Module):
    """A learned vector for each of the first `length` positions (table 3, row E)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(length, width)

    def forward(self, start: int, like: Tensor) -> Tensor:
        """Encode the T positions from `start`, for `like` (B, T, D)."""
        end = start + like.shape[-2]
        if end > (known := self.embedding.num_embeddings):
            raise ValueError(f"a sentence has {end} positions; {known} were learned")
        scale: float = self.embedding.embedding_dim**0.5
        return self.embedding.weight[start:end] * scale  # (T, D)


def rotate(x: Tensor, encodings: Tensor) -> Tensor:
    """Rotate each pair of features of x (..., T, K) by its position's angle (Su et al., 2021).

    ⟨rotate(q, PE(t)), rotate(k, PE(s))⟩ depends on t and s through t − s alone.
    """
    sine, cosine = encodings[:, 0::2], encodings[:, 1::2]  # (T, K/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    rotated = [even * cosine - odd * sine, even * sine + odd * cosine]
    return torch.stack(rotated, dim=-1).flatten(-2)  # (..., T, K)
