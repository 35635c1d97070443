"""Traces: attention weights by name, such as `encoder.0.self` and `decoder.2.cross`."""

from typing import Any

from torch import Tensor


class Trace:
    """Collects attention weights (B, H, T, S) by name, unless `weights` is False.

    An encoder that merges or prunes adds a `layers.reduction` map after each layer.
    """

    def __init__(self, weights: bool = True) -> None:
        self.wanted = weights
        self.weights: dict[str, Tensor] = {}
        self.reductions: list[Any] = []
        self.merged: dict[str, Tensor] = {}  # the place (B, N) of each position of a picture
        self.prefix = ""

    def at(self, part: str) -> "Trace":
        """View of this trace under a longer prefix."""
        view = Trace(self.wanted)
        view.weights, view.reductions, view.merged = self.weights, self.reductions, self.merged
        view.prefix = f"{self.prefix}{part}."
        return view

    def on_tokens(self) -> dict[str, Tensor]:
        """Weights between source tokens, also where some of these were merged or pruned."""
        return {name: self._spread(name, weights) for name, weights in self.weights.items()}

    def _spread(self, name: str, weights: Tensor) -> Tensor:
        stack, layer, kind = name.split(".")
        layers_before = int(layer) if stack == "encoder" else 0
        if kind == "cross":
            layers_before = len(self.reductions)
        if not 0 < layers_before <= len(self.reductions):
            return weights
        spread: Tensor = self.reductions[layers_before - 1].on_tokens(weights, kind == "self")
        return spread


def at(trace: Trace | None, part: str) -> Trace | None:
    return None if trace is None else trace.at(part)


def wanted(trace: Trace | None) -> bool:
    """Whether attention must compute its weights explicitly."""
    return trace is not None and trace.wanted


def keep(trace: Trace | None, name: str, weights: Tensor | None) -> None:
    """Record weights (B, H, T, S) under their name."""
    if trace is not None and trace.wanted and weights is not None:
        trace.weights[trace.prefix + name] = weights.detach()
