"""Traces: attention weights by name (`encoder.0.self`, `decoder.2.cross`), and where tokens went."""

from typing import Protocol

from torch import Tensor


class TokenMap(Protocol):
    """Map from source tokens to the fewer places of a later layer (see `layers.reduction`)."""

    @property
    def source(self) -> Tensor: ...  # (B, S) place of each token, −1 for none
    @property
    def sizes(self) -> Tensor: ...  # (B, P) tokens in each place
    @property
    def real(self) -> Tensor: ...  # (B, P) False at padding
    def spread(self, weights: Tensor) -> Tensor: ...
    def unmerge(self, y: Tensor) -> Tensor: ...


class Trace:
    """Collects attention weights (B, H, T, S) by name, unless `weights` is False.

    An encoder that merges or prunes tokens adds a map after each of its layers to `reductions`.
    """

    def __init__(self, weights: bool = True) -> None:
        self.wanted = weights
        self.weights: dict[str, Tensor] = {}
        self.reductions: list[TokenMap] = []
        self.prefix = ""

    def at(self, part: str) -> "Trace":
        """View of this trace under a longer prefix."""
        view = Trace(self.wanted)
        view.weights, view.reductions = self.weights, self.reductions
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
        tokens = self.reductions[layers_before - 1]
        weights = tokens.spread(weights)  # (B, H, T, S)
        if kind == "cross":
            return weights
        # Queries that were merged share a row.
        return tokens.unmerge(weights.transpose(1, 2).contiguous()).transpose(1, 2)


def at(trace: Trace | None, part: str) -> Trace | None:
    return None if trace is None else trace.at(part)


def wanted(trace: Trace | None) -> bool:
    """Whether attention must compute its weights explicitly."""
    return trace is not None and trace.wanted


def keep(trace: Trace | None, name: str, weights: Tensor | None) -> None:
    """Record weights (B, H, T, S) under their name."""
    if trace is not None and trace.wanted and weights is not None:
        trace.weights[trace.prefix + name] = weights.detach()
