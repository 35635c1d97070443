"""Heads switched off: copies of a model in which some heads contribute nothing."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.see.alignment import Head
from seq2see.see.figures import head_title


def without_heads(model: Any, heads: Iterable[Head]) -> Any:
    """Copy a model, sharing its weights, with these heads off.

    Whatever a head reads is multiplied by its columns of the linear map after the attention; in the
    copy, these are zero.
    """
    copies: dict[str, Any] = {"": _shallow(model)}
    maps: dict[str, nn.Linear] = {}
    for layer, head in heads:
        path, columns = _columns(model, layer, head)
        if path not in maps:
            maps[path] = _copied(copies, path)
            weight = maps[path].weight.detach().clone()
            maps[path].weight = nn.Parameter(weight, requires_grad=False)
        with torch.no_grad():
            maps[path].weight[:, columns] = 0.0
    return copies[""]


def without_one_head_each(model: Any, heads: Sequence[Head]) -> Any:
    """Copy a model, sharing its weights, for batches whose row i is computed without `heads[i]`."""
    copies: dict[str, Any] = {"": _shallow(model)}
    for row, (layer, head) in enumerate(heads):
        path, columns = _columns(model, layer, head)
        parent, _, name = path.rpartition(".")
        modules = _copied(copies, parent)._modules
        if not isinstance(modules[name], _RowByRow):
            modules[name] = _RowByRow(modules[name], len(heads))
        modules[name].on[row, :, columns] = 0.0
    return copies[""]


class _RowByRow(nn.Module):
    """A linear map that multiplies each row of a batch by inputs of its own alone."""

    def __init__(self, linear: nn.Linear, rows: int) -> None:
        super().__init__()
        self.linear = linear
        self.on = linear.weight.new_ones(rows, 1, linear.in_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x * self.on)  # type: ignore[no-any-return]


def switchable(model: Any, layer: str) -> bool:
    """Whether a layer's heads can be switched off one by one."""
    return _reader(model, layer) is not None


def _reader(model: nn.Module, layer: str) -> str | None:
    """The path of the linear map that reads the heads of a layer, if no other layer shares it."""
    stack, number, kind = layer.split(".")
    block = f"{stack}.{number}"
    paths = {path for path, _ in model.named_modules()}
    # In turn: the Transformer's, the convolutional model's and the recurrent models'.
    for path in (f"{block}.{kind}_attention.output", f"{block}.context", "readout"):
        if path in paths:
            return path
    return None


def _columns(model: nn.Module, layer: str, head: int) -> tuple[str, slice]:
    """The linear map that reads a head, and the columns that it is multiplied by."""
    path = _reader(model, layer)
    if path is None:
        rule = "source and target share one attention; switch off the encoder's head"
        raise InputError(f"off: {head_title(layer, head)}: {rule}")
    if path == "readout":  # reads the context beside the state
        inputs: Any = model.get_submodule(path).in_features
        return path, slice(0, inputs // 2)
    if path.endswith(".context"):
        return path, slice(None)
    size: Any = model.get_submodule(path.removesuffix(".output")).size
    return path, slice(head * size, (head + 1) * size)


def _shallow(module: Any) -> Any:
    """Copy a module, whose children and parameters stay shared."""
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    copied._parameters = dict(module._parameters)
    return copied


def _copied(copies: dict[str, Any], path: str) -> Any:
    """Copy the modules on a path, each once."""
    if path not in copies:
        before, _, name = path.rpartition(".")
        parent = _copied(copies, before)
        copies[path] = parent._modules[name] = _shallow(parent._modules[name])
    return copies[path]
