"""Outputs of named modules, recorded while a model runs; the model stays as it was."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn


@contextmanager
def outputs(model: nn.Module, names: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """Collect the tensor that each of these modules returned last, by name."""
    kept: dict[str, Tensor] = {}
    handles = []
    for name in names:

        def keep(module: nn.Module, inputs: Any, output: Tensor, name: str = name) -> None:
            kept[name] = output

        handles.append(model.get_submodule(name).register_forward_hook(keep))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()
