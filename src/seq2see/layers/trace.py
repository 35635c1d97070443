"""What a forward pass looked at, by name (`encoder.0.self`, `decoder.2.cross`), and which tokens it went on with."""

from torch import Tensor

from seq2see.layers.reduction.reduction import Reduction


class Trace:
    """Attention weights (B, H, T, S) by name, if `weights` are wanted; `at` gives a part's view, with its own prefix.

    Where an encoder merges or prunes, `reductions` tell after each layer where the tokens of the source are.
    """

    def __init__(self, weights: bool = True) -> None:
        self.wanted = weights
        self.weights: dict[str, Tensor] = {}
        self.reductions: list[Reduction] = []
        self.prefix = ""

    def at(self, part: str) -> "Trace":
        view = Trace(self.wanted)
        view.weights, view.reductions, view.prefix = (
            self.weights,
            self.reductions,
            f"{self.prefix}{part}.",
        )
        return view

    def on_tokens(self) -> dict[str, Tensor]:
        """The weights, drawn back on the tokens of the source where some of them were merged or pruned."""
        return {name: self._drawn_back(name, weights) for name, weights in self.weights.items()}

    def _drawn_back(self, name: str, weights: Tensor) -> Tensor:
        stack, layer, kind = name.split(".")
        before = (
            len(self.reductions) if kind == "cross" else int(layer) if stack == "encoder" else 0
        )
        if not 0 < before <= len(self.reductions):
            return weights
        there = self.reductions[before - 1]
        weights = there.spread(weights)  # (B, H, T, S)
        if kind == "cross":
            return weights
        return there.unmerge(weights.transpose(1, 2).contiguous()).transpose(
            1, 2
        )  # who was merged looks as one


def wanted(trace: Trace | None) -> bool:
    """Whether anyone wants to see the weights."""
    return trace is not None and trace.wanted


def keep(trace: Trace | None, name: str, weights: Tensor | None) -> None:
    """Put weights (B, H, T, S) under their name, if anyone wants to see them."""
    if trace is not None and trace.wanted and weights is not None:
        trace.weights[trace.prefix + name] = weights.detach()
