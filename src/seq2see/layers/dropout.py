"""Dropout (section 5.4) with masks that cost little: drawn one by one they took an eighth of a training step."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

_own = threading.local()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, this thread draws the masks of the CPU from a generator of its own, whatever other threads draw."""
    _own.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        del _own.generator


def check_share(p: float) -> float:
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}; it must be at least 0 and less than 1")
    return p


def drop(x: Tensor, p: float) -> Tensor:
    """Each number becomes 0 with probability p, and x / (1 − p) otherwise, so that its mean stays."""
    if check_share(p) == 0:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, p)
    drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
    drawn.random_(-(2**63), None, generator=getattr(_own, "generator", None))
    four_each = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # 64 random bits serve four numbers
    dropped = round(p * 2**16)
    keep = (four_each >= dropped - 2**15).to(x.dtype).mul_(1 / (1 - dropped / 2**16))
    return x * keep


class Dropout(nn.Module):
    """`drop` in training, nothing otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_share(p)

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p) if self.training else x
