"""Why √d: what the size of queries and keys does to scores, weights and gradients (section 3.2.1), measured."""

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from torch import Tensor

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.scores import SCORES
from seq2see.see import figures
from seq2see.see.comparison import table

SIZES = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
NAMES = {"dot": "dot", "scaled_dot": "scaled dot", "unscaled": "dot, queries drawn smaller"}
LENGTH = 64  # queries, and keys


@dataclass(frozen=True)
class Effect:
    """What one score function does to queries and keys of one size."""

    variance: float  # of the scores
    largest: float  # weight of a row, in the mean
    gradient: float  # norm of a row of scores' gradient, in the mean; the values have variance one


def measure() -> dict[str, list[Effect]]:
    """For each score the effect of every size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return {name: [effect(name, size) for size in SIZES] for name in NAMES}


def effect(name: str, size: int) -> Effect:
    """Independent inputs of variance one → scores → weights → gradient."""
    draws = max(16, 4096 // size)  # where few numbers make a score, one draw says little
    query, key = (
        torch.stack(each) for each in zip(*(_drawn(name, size) for _ in range(draws)), strict=True)
    )
    score = SCORES[name](size, 1)
    value = torch.randn(*key.shape[:-1], 1)
    added = torch.zeros(
        *query.shape[:-1], LENGTH, requires_grad=True
    )  # its gradient is that of the scores
    output, weights = attend(query, key, value, bias=added, score=score)
    output.sum().backward()  # type: ignore[no-untyped-call]
    assert weights is not None and added.grad is not None
    return Effect(
        variance=score(query, key).var().item(),
        largest=weights.amax(-1).mean().item(),
        gradient=added.grad.norm(dim=-1).mean().item(),
    )


@torch.no_grad()
def _drawn(name: str, size: int) -> tuple[Tensor, Tensor]:
    """Queries and keys (T, K): of variance one, or as a fresh attention with unscaled scores makes them."""
    query, key = torch.randn(LENGTH, size), torch.randn(LENGTH, size)
    if name != "unscaled":
        return query, key
    attention = MultiHeadAttention(size, heads=1, bias=False, score=name)
    return attention.query(query), attention.key(key)


def lines(found: dict[str, list[Effect]]) -> list[str]:
    """The figures for a terminal."""
    rows: list[str] = []
    for title, field, digits in (
        ("variance of the scores", "variance", 2),
        (f"largest of {LENGTH} weights", "largest", 3),
        ("norm of the scores' gradient", "gradient", 4),
    ):
        cells = [
            [NAMES[name], *(f"{getattr(e, field):.{digits}f}" for e in row)]
            for name, row in found.items()
        ]
        rows += [title, *table([["size", *map(str, SIZES)], *cells]), ""]
    return rows[:-1]


def draw(found: dict[str, list[Effect]]) -> Figure:
    """Three charts over the size of queries and keys."""
    figure = Figure(figsize=(10, 3.3), layout="constrained")
    variance, largest, gradient = figure.subplots(1, 3)
    looks = {
        "dot": (figures.RED, "s-"),
        "scaled_dot": (figures.BLUE, "o-"),
        "unscaled": (figures.GREEN, "^--"),
    }
    for name, effects in found.items():
        colour, mark = looks[name]
        for axes, field in ((variance, "variance"), (largest, "largest"), (gradient, "gradient")):
            values = [getattr(each, field) for each in effects]
            axes.plot(
                SIZES, values, mark, color=colour, label=NAMES[name], markersize=4, linewidth=1.2
            )
    figures.label(
        variance, "The scores spread", "d, the size of queries and keys", "variance of the scores"
    )
    figures.label(largest, "One weight takes all", "d", f"largest of {LENGTH} weights, in the mean")
    figures.label(
        gradient, "Little is left to learn from", "d", "norm of the scores' gradient, in the mean"
    )
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
