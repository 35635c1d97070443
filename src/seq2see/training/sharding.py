"""Tensors that are sharded over processes: gathered for checkpoints, and placed again."""

from collections.abc import Callable
from typing import Any

from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor, which all processes have to ask for."""
    gather: Callable[[], Tensor] | None = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()


def placed_like(weight: Any, tensor: Tensor) -> Tensor:
    """Put a whole tensor on the device of a weight; shard it if it belongs to a sharded one."""
    tensor = tensor.to(weight.device)
    if not hasattr(weight, "placements") or tensor.shape != weight.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor  # takes a while to import

    mesh = weight.device_mesh
    return distribute_tensor(tensor, mesh, weight.placements, src_data_rank=None)
