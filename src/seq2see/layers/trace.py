"""What a forward pass looked at, by name: `encoder.0.self`, `decoder.2.cross`."""

from torch import Tensor


class Trace:
    """Attention weights (B, H, T, S) by name; `at` gives the view of one part that adds its own prefix."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self.prefix = ""

    def at(self, part: str) -> "Trace":
        view = Trace()
        view.weights, view.prefix = self.weights, f"{self.prefix}{part}."
        return view


def keep(trace: Trace | None, name: str, weights: Tensor | None) -> None:
    """Put weights (B, H, T, S) under their name, if anyone wants to see them."""
    if trace is not None and weights is not None:
        trace.weights[trace.prefix + name] = weights.detach()
