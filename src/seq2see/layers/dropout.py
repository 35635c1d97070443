"""Dropout (section 5.4) with cheap masks: one draw per value took an eighth of a training step."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from numpy.random import SFC64, Generator
from torch import Tensor, nn

_local = threading.local()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw this thread's CPU masks from a generator of its own, independent of other threads."""
    _local.rng = Generator(SFC64(seed))  # takes half the time of torch's generator
    try:
        yield
    finally:
        del _local.rng


def check_share(p: float) -> float:
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}; it must be at least 0 and less than 1")
    return p


def drop(x: Tensor, p: float) -> Tensor:
    """Set each value to 0 with probability p, else to x / (1 − p), which preserves the mean."""
    if check_share(p) == 0:
        return x
    return x * _mask(x, p) if x.device.type == "cpu" else torch.dropout(x, p, train=True)


def drop_relu(x: Tensor, p: float) -> Tensor:
    """drop(max(0, x), p), keeping only its output for the backward pass."""
    if check_share(p) == 0 or x.device.type != "cpu":
        return drop(x.relu(), p)
    return _DropRelu.apply(x, p)  # type: ignore[no-untyped-call, no-any-return]


def _mask(x: Tensor, p: float) -> Tensor:
    """0 with probability p, rounded to 16 bits, else 1 / (1 − p), for each value of x."""
    rng = getattr(_local, "rng", None) or Generator(SFC64(int(torch.randint(2**63 - 1, ()))))
    words = torch.from_numpy(rng.integers(-(2**63), 2**63, (x.numel() + 3) // 4))
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)  # 64 random bits serve four values
    dropped = round(p * 2**16)
    return torch.ge(draws, dropped - 2**15, out=torch.empty_like(x)).mul_(1 / (1 - dropped / 2**16))


class _DropRelu(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, p: float) -> Tensor:
        output = x.relu().mul_(_mask(x, p))
        context.save_for_backward(output)  # positive exactly where the gradient passes
        context.scale = 1 / (1 - round(p * 2**16) / 2**16)
        return output

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (output,) = context.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], output, 0).mul_(context.scale), None


class Dropout(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = check_share(p)

    def forward(self, x: Tensor) -> Tensor:
        """Apply `drop` during training; return x unchanged otherwise."""
        return drop(x, self.p) if self.training else x
