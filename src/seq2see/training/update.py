"""The gradient of one update: its passes, shared out to processes or to the threads of one."""

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import nn

from seq2see.batches import Examples
from seq2see.training.criterion import BatchLoss as BatchLoss
from seq2see.training.criterion import Compute, Criterion, Pass
from seq2see.training.distributed import ALONE, World
from seq2see.training.passes import cut, deal
from seq2see.training.threads import Threads


class Update(NamedTuple):
    """Loss summed over the passes of this process, and the number of targets of all processes."""

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
        world: World = ALONE,
        shard: str = "none",
    ) -> None:
        """Prepare; products are computed in `dtype`, the weights and their updates in float32.

        A process among several has one worker, and a model to `shard` is sharded here.
        """
        self.world = world
        self.own_targets = 0  # of this process in the last update
        self.device = next(model.parameters()).device
        self.pass_tokens = pass_tokens if self.device.type == "cpu" else math.inf
        compute = Compute(self.device, dtype)
        criterion = Criterion(model, loss)
        self.engine: Engine
        if world.size == 1:
            self.engine = Threads(criterion, compute, workers)
        else:
            from seq2see.training.parallel import Parallel  # takes a while to import

            self.engine = Parallel(criterion, compute, world, shard)

    def fill(self, examples: Examples, batches: Sequence[Sequence[int]], key: str) -> Update:
        """Compute the gradient of the mean loss per target over all batches together.

        The key and the number of a pass seed its dropout masks, whoever computes it.
        """
        lines = cut(examples.lengths, batches, self.device, self.pass_tokens)
        work = [int(examples.lengths[of_pass].sum()) for of_pass in lines]
        shares = deal(work, self.world.size)
        own = [
            Pass(examples.batch(lines[number]), _seed(f"{key}/{number}"), work[number])
            for number in shares[self.world.rank]
        ]
        idle = max(map(len, shares)) - len(own)
        # The number of passes is the same on all ranks: sharded weights are gathered in each.
        no_work = [Pass(examples.batch(lines[0][:1]), 0, 0, weight=0.0)] * idle
        self.own_targets = sum(one.batch.target_tokens for one in own)
        targets = int(sum(row[0] for row in self.world.gather([self.own_targets])))
        loss = self.engine.backward([*no_work, *own], 1 / targets)
        return Update(loss, targets)


class Engine(Protocol):
    seconds: float  # that the passes of the last update took, without waiting for other processes

    def backward(self, passes: Sequence[Pass], scale: float) -> float:
        """Fill the gradients of `scale` × the loss of these passes; return their summed loss."""
        ...


def workers_for(passes: int, device: torch.device) -> int:
    """One worker per thread, if there are as many passes in an update; one on a GPU."""
    return min(torch.get_num_threads(), passes) if device.type == "cpu" else 1


def _seed(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
