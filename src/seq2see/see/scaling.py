"""Measurements of the 1/√d in attention: scores, weights and gradients (section 3.2.1)."""

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from torch import Tensor

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.scores import SCORES
from seq2see.see import figures
from seq2see.see.tables import table

SIZES = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
NAMES = {"dot": "dot", "scaled_dot": "scaled dot", "unscaled": "dot, smaller initial queries"}
STYLES = {
    "dot": (figures.RED, "s-"),
    "scaled_dot": (figures.BLUE, "o-"),
    "unscaled": (figures.GREEN, "^--"),
}
LENGTH = 64  # queries, and keys


@dataclass(frozen=True)
class Effect:
    """The effect of one score function on queries and keys of one size."""

    variance: float  # of the scores
    largest: float  # weight of a query, averaged over queries
    gradient: float  # norm per query of the scores' gradient, averaged; values have variance one


def measure() -> dict[str, list[Effect]]:
    """Measure every score function at every size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return {name: [effect(name, size) for size in SIZES] for name in NAMES}


def effect(name: str, size: int) -> Effect:
    """Measure one score function on independent inputs of variance one."""
    draws = max(16, 4096 // size)  # scores of few features are noisy, so small sizes get more draws
    pairs = [_query_and_key(name, size) for _ in range(draws)]
    query = torch.stack([query for query, _ in pairs])  # (draws, T, K)
    key = torch.stack([key for _, key in pairs])
    score = SCORES[name](size, 1)
    value = torch.randn(draws, LENGTH, 1)
    bias = torch.zeros(draws, LENGTH, LENGTH, requires_grad=True)  # has the scores' gradient
    output, weights = attend(query, key, value, bias=bias, score=score)
    output.sum().backward()  # type: ignore[no-untyped-call]
    assert weights is not None and bias.grad is not None
    return Effect(
        variance=score(query, key).var().item(),
        largest=weights.amax(-1).mean().item(),
        gradient=bias.grad.norm(dim=-1).mean().item(),
    )


@torch.no_grad()
def _query_and_key(name: str, size: int) -> tuple[Tensor, Tensor]:
    """Draw queries and keys (T, K) of variance one; `unscaled` projects them as initialised."""
    query = torch.randn(LENGTH, size)
    key = torch.randn(LENGTH, size)
    if name != "unscaled":
        return query, key
    attention = MultiHeadAttention(size, heads=1, bias=False, score=name)
    return attention.query(query), attention.key(key)


def report(effects: dict[str, list[Effect]]) -> list[str]:
    """Format the measurements as tables for a terminal."""
    lines: list[str] = []
    for title, field, digits in (
        ("variance of the scores", "variance", 2),
        (f"largest of {LENGTH} weights", "largest", 3),
        ("norm of the scores' gradient", "gradient", 4),
    ):
        rows = [["size", *map(str, SIZES)]]
        for name, by_size in effects.items():
            values = [getattr(effect, field) for effect in by_size]
            rows.append([NAMES[name], *(f"{value:.{digits}f}" for value in values)])
        lines += [title, *table(rows), ""]
    return lines[:-1]


def draw(effects: dict[str, list[Effect]]) -> Figure:
    """Draw score variance, largest weight and score gradient against the size d."""
    figure = Figure(figsize=(10, 3.3), layout="constrained")
    variance, largest, gradient = figure.subplots(1, 3)
    for name, by_size in effects.items():
        colour, style = STYLES[name]
        for axes, field in ((variance, "variance"), (largest, "largest"), (gradient, "gradient")):
            values = [getattr(effect, field) for effect in by_size]
            axes.plot(
                SIZES, values, style, color=colour, label=NAMES[name], markersize=4, linewidth=1.2
            )
    size = "d, size of queries and keys"
    figures.label(variance, "Score variance grows with d", size, "variance of the scores")
    figures.label(largest, "One weight dominates", size, f"largest of {LENGTH} weights, mean")
    figures.label(gradient, "Gradients shrink", size, "norm of the scores' gradient, mean")
    for axes in (variance, largest, gradient):
        axes.set_xscale("log", base=2)
        axes.set_xticks(SIZES)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    variance.set_yscale("log")
    variance.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    largest.set_ylim(0, 1)
    gradient.set_ylim(bottom=0)
    for axes in (largest, gradient):
        axes.get_legend().remove()
    return figure
