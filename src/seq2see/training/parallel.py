"""The passes of one process among several: PyTorch's DDP, or FSDP2 for sharded weights."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from seq2see.training.criterion import Compute, Criterion, Pass
from seq2see.training.distributed import World

FORWARD = 1 / 3  # of the time of a pass
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d)


class Parallel:
    """One process among several, whose gradients are summed during the last backward pass."""

    def __init__(self, criterion: Criterion, compute: Compute, world: World, shard: str) -> None:
        """Wrap a model; sharding replaces its weights by parts of them, in place."""
        self.compute = compute
        self.size = world.size
        self.settled = shard == "full"
        self.seconds = 0.0  # that the passes of the last update took, without waiting for others
        criterion.train()
        self.module: nn.Module = criterion
        if shard == "full":
            shard_over(world, criterion, compute.device.type)
        else:
            # A convolution of 1 × 1 has weights whose strides can be written in two ways.
            warnings.filterwarnings("ignore", "Grad strides do not match")
            self.module = DistributedDataParallel(criterion, gradient_as_bucket_view=True)

    def backward(self, passes: Sequence[Pass], scale: float) -> float:
        """Fill the gradients of `scale` × the loss of all processes; return this one's loss."""
        if not self.settled:
            self._settle(passes[0])
        scale *= self.size  # PyTorch averages over the processes
        started = time.perf_counter()
        total = 0.0
        for one in passes[:-1]:
            with self._alone():
                loss = self.compute(self.module, one)
                (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        loss = self.compute(self.module, passes[-1])
        done = len(passes) - 1 + FORWARD
        self.seconds = (time.perf_counter() - started) * len(passes) / done
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        return total + loss.item()

    def _settle(self, one: Pass) -> None:
        """Let DDP choose its buckets, which it does after a first backward pass.

        They decide the order of summation, which has to be the same in a run that was resumed.
        """
        (self.compute(self.module, one) * 0.0).backward()  # type: ignore[no-untyped-call]
        self.module.zero_grad(set_to_none=True)
        self.settled = True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the gradients to this process, for more to be added."""
        if isinstance(self.module, DistributedDataParallel):
            with self.module.no_sync():
                yield
        elif isinstance(self.module, FSDPModule):
            self.module.set_requires_gradient_sync(False)
            yield
            self.module.set_requires_gradient_sync(True)


def shard_over(world: World, criterion: Criterion, device: str) -> None:
    """Shard the weights, in place; a matrix inside a stack is whole only while it computes.

    Embeddings, the output matrix and vectors are whole during a pass. Layers are no units: the keys
    and values of cross-attention are computed before its layer is.
    """
    # It warns of operations in place on the result of a matrix product; the layers have none.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module")
    mesh = init_device_mesh(device, (world.size,))
    stacks = [module for module in criterion.modules() if isinstance(module, nn.ModuleList)]
    inside = [module for stack in stacks for module in stack.modules()]
    for matrix in dict.fromkeys(module for module in inside if isinstance(module, MATRICES)):
        fully_shard(matrix, mesh=mesh)
    fully_shard(criterion, mesh=mesh)
