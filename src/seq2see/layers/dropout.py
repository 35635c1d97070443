"""Dropout (section 5.4) with masks that cost little: drawn one by one they took an eighth of a training step."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_own = threading.local()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, this thread draws the masks of the CPU from a generator of its own, whatever other threads draw."""
    _own.generator = _generator(seed)
    try:
        yield
    finally:
        del _own.generator


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))  # half the time of torch's


def check_share(p: float) -> float:
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}; it must be at least 0 and less than 1")
    return p


def drop(x: Tensor, p: float) -> Tensor:
    """Each number becomes 0 with probability p, and x / (1 − p) otherwise, so that its mean stays."""
    if check_share(p) == 0:
        return x
    return functional.dropout(x, p) if x.device.type != "cpu" else x * _kept(x, p)


def drop_relu(x: Tensor, p: float) -> Tensor:
    """drop(max(0, x), p), with less to keep for the way back."""
    if check_share(p) == 0 or x.device.type != "cpu":
        return drop(x.relu(), p)
    return _DropRelu.apply(x, p)  # type: ignore[no-untyped-call, no-any-return]


def _kept(x: Tensor, p: float) -> Tensor:
    """0 with probability p, which is rounded to 16 bits, and 1 / (1 − p) otherwise, for each number of x."""
    generator = getattr(_own, "generator", None) or _generator(int(torch.randint(2**63 - 1, ())))
    drawn = torch.from_numpy(generator.integers(-(2**63), 2**63, (x.numel() + 3) // 4))
    four_each = drawn.view(torch.int16)[: x.numel()].view(
        x.shape
    )  # 64 random bits serve four numbers
    dropped = round(p * 2**16)
    return torch.ge(four_each, dropped - 2**15, out=torch.empty_like(x)).mul_(
        1 / (1 - dropped / 2**16)
    )


class _DropRelu(torch.autograd.Function):
    """What comes out is positive just where both let x through: it is all that the gradient needs."""

    @staticmethod
    def forward(context: Any, x: Tensor, p: float) -> Tensor:
        passed = x.relu().mul_(_kept(x, p))
        context.save_for_backward(passed)
        context.scale = 1 / (1 - round(p * 2**16) / 2**16)
        return passed

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (passed,) = context.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], passed, 0).mul_(context.scale), None


class Dropout(nn.Module):
    """`drop` in training, nothing otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_share(p)

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p) if self.training else x
