"""What a forward pass looked at, by name: `encoder.0.self`, `decoder.2.cross`."""

from torch import Tensor


class Trace:
    """Attention weights (B, H, T, S) by name; `at` gives the view of one part that adds its own prefix."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self._prefix = ""

    def at(self, part: str) -> "Trace":
        view = Trace()
        view.weights, view._prefix = self.weights, f"{self._prefix}{part}."
        return view

    def keep(self, name: str, weights: Tensor | None) -> None:
        if weights is not None:
            self.weights[self._prefix + name] = weights.detach()
