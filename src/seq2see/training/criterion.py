"""One pass of an update: examples through a model and its loss, under their own dropout masks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import AnyBatch
from seq2see.layers.dropout import seeded

BatchLoss = Callable[[nn.Module, Any], Tensor]  # summed over the targets of a batch


class Pass(NamedTuple):
    """Examples that go through the model together, and the seed of their dropout masks."""

    batch: AnyBatch
    seed: int
    work: int  # tokens
    weight: float = 1.0  # of its loss; 0 for a process that has nothing to do meanwhile


class Criterion(nn.Module):
    """A model together with its loss, as one module with one forward pass."""

    def __init__(self, model: nn.Module, loss: BatchLoss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch: Any) -> Tensor:
        return self.loss(self.model, batch)


@dataclass(frozen=True)
class Compute:
    """The forward computation of passes: its device, and the type of its matrix products."""

    device: torch.device
    dtype: torch.dtype

    def __call__(self, criterion: nn.Module, one: Pass) -> Tensor:
        """The summed loss of a pass."""
        if self.device.type != "cpu":
            torch.manual_seed(one.seed)
        # The cache of rounded weights belongs to all threads; each of them clears it.
        mixed = self.dtype != torch.float32
        rounded = torch.autocast(self.device.type, self.dtype, mixed, cache_enabled=False)
        with seeded(one.seed), rounded:
            loss: Tensor = criterion(one.batch.to(self.device))
        return loss * one.weight
