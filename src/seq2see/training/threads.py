"""The passes of one process, shared out to worker threads that meet once an update.

One thread per worker is faster than threads that meet at every matrix product.
"""

import copy
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seq2see.training.criterion import Compute, Criterion, Pass
from seq2see.training.passes import deal
from seq2see.training.workers import share_out


class Threads:
    """Workers that each have a replica of the model, with its weights and its own gradients."""

    def __init__(self, criterion: Criterion, compute: Compute, workers: int) -> None:
        self.compute = compute
        self.workers = workers
        self.seconds = 0.0  # of the last update
        self.weights = [weight for weight in criterion.parameters() if weight.requires_grad]
        self.replicas = [_replica(criterion) for _ in range(workers)]

    def backward(self, passes: Sequence[Pass], scale: float) -> float:
        """Fill the gradients of `scale` × the loss of the passes; return their summed loss."""
        started = time.perf_counter()
        shares = deal([one.work for one in passes], self.workers)

        def work(worker: int) -> float:
            share = [passes[number] for number in shares[worker]]
            return self._accumulate(self.replicas[worker], share, scale)

        loss = sum(share_out(work, range(self.workers), self.workers))
        pairs = zip(self.replicas, shares, strict=True)
        gradients = [_take_gradients(replica) for replica, share in pairs if share]
        for others in gradients[1:]:
            torch._foreach_add_(gradients[0], others)
        for weight, gradient in zip(self.weights, gradients[0], strict=True):
            weight.grad = gradient
        self.seconds = time.perf_counter() - started
        return loss

    def _accumulate(self, replica: nn.Module, passes: Sequence[Pass], scale: float) -> float:
        replica.zero_grad(set_to_none=True)  # left by an update that failed
        total = 0.0
        for one in passes:
            loss = self.compute(replica, one)
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total


def _replica(criterion: Criterion) -> Criterion:
    """Copy a model with shared weights and gradients of its own."""
    shared = {
        id(weight): nn.Parameter(weight.detach(), weight.requires_grad)
        for weight in criterion.parameters()
    }
    replica = Criterion(copy.deepcopy(criterion.model, shared).train(), criterion.loss)
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
