"""Hooks while a model runs; afterwards the model is as it was."""

from collections.abc import Callable, Iterator, Sequence
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


@contextmanager
def before_passes(model: nn.Module, check: Callable[[], object]) -> Iterator[None]:
    """Call `check`, which may raise, before each forward pass of a model."""

    def begin(module: nn.Module, inputs: Any) -> None:
        check()

    handle = model.register_forward_pre_hook(begin)
    try:
        yield
    finally:
        handle.remove()
