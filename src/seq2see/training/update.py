"""The gradient of one update, computed by several workers that meet once an update.

One thread per worker is faster than threads that meet at every matrix product.
"""

import copy
import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import AnyBatch, Examples, Lengths
from seq2see.layers.dropout import seeded
from seq2see.training.workers import share_out

WORKER_TOKENS = 256  # on the longer side of a batch; products of fewer are too small to be fast

BatchLoss = Callable[[nn.Module, Any], Tensor]  # summed over the targets of a batch


class Update(NamedTuple):
    """Summed loss and number of targets of one update."""

    loss: float
    targets: int


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
        self.pass_tokens = pass_tokens
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.device = self.weights[0].device
        self.replicas = [_replica(model) for _ in range(workers)]

    def fill(self, examples: Examples, batches: Sequence[Sequence[int]], key: str) -> Update:
        """Compute the gradient of the mean loss per target over all batches together.

        The key seeds the dropout masks.
        """
        longest = self.pass_tokens if self.device.type == "cpu" else math.inf
        passes = _passes_of_workers(examples.lengths, batches, longest, self.workers)
        shares = [[examples.batch(lines) for lines in share] for share in passes]
        targets = sum(batch.target_tokens for share in shares for batch in share)

        def work(worker: int) -> float:
            share = shares[worker]
            return self._accumulate(self.replicas[worker], share, targets, f"{key}/{worker}")

        loss = sum(share_out(work, range(self.workers), self.workers))
        pairs = zip(self.replicas, shares, strict=True)
        gradients = [_take_gradients(replica) for replica, share in pairs if share]
        for others in gradients[1:]:
            torch._foreach_add_(gradients[0], others)
        for weight, gradient in zip(self.weights, gradients[0], strict=True):
            weight.grad = gradient
        return Update(loss, targets)

    def _mixed_precision(self) -> torch.autocast:
        # The cache of rounded weights belongs to all threads; each of them clears it.
        enabled = self.dtype != torch.float32
        return torch.autocast(self.device.type, self.dtype, enabled, cache_enabled=False)

    def _accumulate(
        self, model: nn.Module, batches: Sequence[AnyBatch], targets: int, key: str
    ) -> float:
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        model.zero_grad(set_to_none=True)  # left by an update that failed
        total = 0.0
        with seeded(seed):
            for batch in batches:
                with self._mixed_precision():
                    loss = self.loss(model, batch.to(self.device))
                (loss / targets).backward()  # type: ignore[no-untyped-call]
                total += loss.item()
        return total


def workers_for(
    lengths: Lengths, batches: Sequence[Sequence[int]], accumulate: int, device: torch.device
) -> int:
    """One worker per thread, if each gets enough of an update; one on a GPU."""
    if device.type != "cpu":
        return 1
    tokens = int(lengths.max(axis=1).sum()) / len(batches)
    enough = max(accumulate, int(tokens / WORKER_TOKENS))
    return max(1, min(torch.get_num_threads(), enough))


def _passes_of_workers(
    lengths: Lengths, batches: Sequence[Sequence[int]], longest: float, workers: int
) -> list[list[Sequence[int]]]:
    """Deal the lines of an update to the workers, round-robin by length, and cut them into passes.

    The gradient is a sum over examples, so a pass need not be a batch. A pass has examples of
    similar length and, padding included, not many more tokens than `longest` or the largest batch.
    """
    length = {line: int(lengths[line].max()) for batch in batches for line in batch}
    largest = max(len(batch) * max(length[line] for line in batch) for batch in batches)
    lines = [line for batch in batches for line in batch]
    lines.sort(key=lambda line: length[line], reverse=True)
    return [
        _passes([(line, length[line]) for line in lines[worker::workers]], min(longest, largest))
        for worker in range(workers)
    ]


def _passes(lines: Sequence[tuple[int, int]], longest: float) -> list[Sequence[int]]:
    """Cut lines with their falling lengths into few passes of about equally many tokens."""
    before = [0, *itertools.accumulate(length for _, length in lines)]
    parts = math.ceil(before[-1] / longest)
    passes: list[list[int]] = [[] for _ in range(parts)]
    for (line, _), tokens in zip(lines, before, strict=False):
        passes[tokens * parts // before[-1]].append(line)
    return [lines_of_pass for lines_of_pass in passes if lines_of_pass]


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
