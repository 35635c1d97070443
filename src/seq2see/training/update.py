"""The gradient of one update, computed by several workers that meet once an update.

One thread per worker is faster than threads that meet at every matrix product.
"""

import copy
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import AnyBatch, Examples
from seq2see.layers.dropout import seeded
from seq2see.training.passes import cut, deal
from seq2see.training.workers import share_out

BatchLoss = Callable[[nn.Module, Any], Tensor]  # summed over the targets of a batch


class Update(NamedTuple):
    """Summed loss and number of targets of one update."""

    loss: float
    targets: int


class Pass(NamedTuple):
    """Examples that go through the model together, and the seed of their dropout masks."""

    batch: AnyBatch
    seed: int
    work: int  # tokens


class Gradients:
    """Fills the gradients of a model's weights: bit for bit the same for a key and workers."""

    def __init__(
        self,
        model: nn.Module,
        loss: BatchLoss,
        workers: int,
        pass_tokens: float = math.inf,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Prepare; products are computed in `dtype`, the weights and their updates in float32."""
        self.loss = loss
        self.dtype = dtype
        self.workers = workers
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.device = self.weights[0].device
        self.pass_tokens = pass_tokens if self.device.type == "cpu" else math.inf
        self.replicas = [_replica(model) for _ in range(workers)]

    def fill(self, examples: Examples, batches: Sequence[Sequence[int]], key: str) -> Update:
        """Compute the gradient of the mean loss per target over all batches together.

        The key and the number of a pass seed its dropout masks, whoever computes it.
        """
        passes = self._passes(examples, batches, key)
        targets = sum(one.batch.target_tokens for one in passes)
        shares = deal([one.work for one in passes], self.workers)

        def work(worker: int) -> float:
            share = [passes[number] for number in shares[worker]]
            return self._accumulate(self.replicas[worker], share, targets)

        loss = sum(share_out(work, range(self.workers), self.workers))
        pairs = zip(self.replicas, shares, strict=True)
        gradients = [_take_gradients(replica) for replica, share in pairs if share]
        for others in gradients[1:]:
            torch._foreach_add_(gradients[0], others)
        for weight, gradient in zip(self.weights, gradients[0], strict=True):
            weight.grad = gradient
        return Update(loss, targets)

    def _passes(self, examples: Examples, batches: Sequence[Sequence[int]], key: str) -> list[Pass]:
        lines_of_passes = cut(examples.lengths, batches, self.device, self.pass_tokens)
        return [
            Pass(examples.batch(lines), seed_of(f"{key}/{number}"), work_of(examples, lines))
            for number, lines in enumerate(lines_of_passes)
        ]

    def _mixed_precision(self) -> torch.autocast:
        # The cache of rounded weights belongs to all threads; each of them clears it.
        enabled = self.dtype != torch.float32
        return torch.autocast(self.device.type, self.dtype, enabled, cache_enabled=False)

    def _accumulate(self, model: nn.Module, passes: Sequence[Pass], targets: int) -> float:
        model.zero_grad(set_to_none=True)  # left by an update that failed
        total = 0.0
        for one in passes:
            if self.device.type != "cpu":
                torch.manual_seed(one.seed)
            with seeded(one.seed), self._mixed_precision():
                loss = self.loss(model, one.batch.to(self.device))
            (loss / targets).backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total


def workers_for(passes: int, device: torch.device) -> int:
    """One worker per thread, if there are as many passes in an update; one on a GPU."""
    return min(torch.get_num_threads(), passes) if device.type == "cpu" else 1


def seed_of(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1


def work_of(examples: Examples, lines: Sequence[int]) -> int:
    """Count the tokens of some lines on both sides."""
    return int(examples.lengths[list(lines)].sum())


def _replica(model: nn.Module) -> nn.Module:
    """Copy a model with shared weights and gradients of its own."""
    shared = {
        id(weight): nn.Parameter(weight.detach(), weight.requires_grad)
        for weight in model.parameters()
    }
    replica = copy.deepcopy(model, shared).train()
    for module in replica.modules():
        if isinstance(module, nn.Embedding) and module.weight.device.type == "cpu":
            module.sparse = True  # a batch uses few rows; zeros for all others are not written
    return replica


def _take_gradients(replica: nn.Module) -> list[Tensor]:
    """Return the gradients of a replica and clear them."""
    weights = [weight for weight in replica.parameters() if weight.requires_grad]
    gradients = [
        torch.zeros_like(weight) if weight.grad is None else weight.grad.to_dense()
        for weight in weights
    ]
    replica.zero_grad(set_to_none=True)
    return gradients
