"""Dropout (section 5.4) with masks that cost little: drawn one by one they took an eighth of a training step."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def dropout(x: Tensor, p: float) -> Tensor:
    """Each number becomes 0 with probability p, and x / (1 − p) otherwise, so that its mean stays."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}; it must be at least 0 and less than 1")
    if p == 0:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, p)
    drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    four_each = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # 64 random bits serve four numbers
    dropped = round(p * 2**16)
    keep = (four_each >= dropped - 2**15).to(x.dtype).mul_(1 / (1 - dropped / 2**16))
    return x * keep


class Dropout(nn.Module):
    """`dropout` in training, nothing otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training else x
