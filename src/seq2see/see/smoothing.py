"""Label smoothing (section 5.4): the target distribution, and the loss as confidence grows."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from seq2see.see.figures import BLUE, GREEN, GREY, RED, label
from seq2see.see.tables import table
from seq2see.text.specials import PAD, SPECIALS
from seq2see.training.loss import Smoothed, smoothed_loss

TARGET = 4  # the first class that is a word
# More points where the loss changes fast.
CONFIDENCE = [*(i / 200 for i in range(4, 199)), *(1 - 0.8**i / 100 for i in range(21))]
REPORTED = [0.5, 0.8, 0.9, 0.99, 0.999]
NO_CHANCE = -100.0  # a logit: padding gets no probability, but 0 × −100 is still 0


class Curves(NamedTuple):
    """Losses of one prediction by the probability that it gives the target."""

    confidence: list[float]
    hard: list[float]  # −log p
    smoothed: list[float]  # ε/V on every class
    cross_entropy: list[float]  # ε/(V−2) on the classes but target and padding
    divergence: list[float]  # the same, less the entropy of the target


def measure(classes: int, epsilon: float, at: Sequence[float] = CONFIDENCE) -> Curves:
    """Compute the losses that training computes, for predictions of growing confidence."""
    confidence = torch.tensor(at, dtype=torch.float64)  # (N,)
    target = torch.full((len(at), 1), TARGET)
    even = _logits(confidence, classes, padding=True)
    without_padding = _logits(confidence, classes, padding=False)
    q = distribution(classes, epsilon, "others")
    cross_entropy = -(q * without_padding.log_softmax(-1)).sum(-1)  # (N,)
    return Curves(
        list(at),
        _losses(even, target, 0.0, "all"),
        _losses(even, target, epsilon, "all"),
        cross_entropy.tolist(),
        _losses(without_padding, target, epsilon, "others"),
    )


def _logits(confidence: Tensor, classes: int, padding: bool) -> Tensor:
    """Give the target these probabilities (N,), and the other classes equal ones: (N, V)."""
    others = classes - 1 if padding else classes - 2
    logits = ((1 - confidence) / others).log()[:, None].repeat(1, classes)
    if not padding:
        logits[:, PAD] = NO_CHANCE
    logits[:, TARGET] = confidence.log()
    return logits


def _losses(logits: Tensor, target: Tensor, epsilon: float, over: str) -> list[float]:
    pairs = zip(logits, target, strict=True)
    return [smoothed_loss(row[None, None], one[None], epsilon, over).item() for row, one in pairs]


def distribution(classes: int, epsilon: float, over: str) -> Tensor:
    """Target distribution q (V,) in either published form."""
    smoothed = Smoothed.of(classes, epsilon, over)
    q = torch.full((classes,), smoothed.other, dtype=torch.float64)
    q[PAD] = smoothed.pad
    q[TARGET] = smoothed.target
    return q


def entropy(classes: int, epsilon: float) -> float:
    """Entropy of the target, by which cross-entropy and divergence differ."""
    return Smoothed.of(classes, epsilon, "others").entropy(classes)


def report(classes: int, epsilon: float) -> list[str]:
    """Tabulate the losses at some confidences, and name the best one and the constant."""
    rows = [["confidence", "−log p", "smoothed", "cross-entropy", "divergence"]]
    for confidence, *losses in zip(*measure(classes, epsilon, REPORTED), strict=True):
        rows.append([f"{confidence:g}", *(f"{loss:z.3f}" for loss in losses)])
    best = 1 - epsilon + epsilon / classes
    return [
        *table(rows),
        "",
        f"ε/V on every class: least loss at a confidence of {best:.4g}",
        f"cross-entropy − divergence = entropy of the target = {entropy(classes, epsilon):.4f}",
    ]


def draw(classes: int, epsilon: float) -> Figure:
    """Draw the target distribution, the loss by confidence, and both forms of the loss."""
    curves = measure(classes, epsilon)
    figure = Figure(figsize=(12.5, 3.8), layout="constrained")
    target, losses, forms = figure.subplots(1, 3)
    _target(target, classes, epsilon)
    _plot(losses, curves.confidence, curves.hard, GREY, "ε = 0: −log p")
    _plot(losses, curves.confidence, curves.smoothed, BLUE, f"ε = {epsilon:g}: ε/V on every class")
    best = 1 - epsilon + epsilon / classes
    losses.axvline(best, color=BLUE, linestyle=":", linewidth=1)
    losses.annotate(
        f"least at {best:.3g}",
        (best, 1),
        (-4, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
        color=BLUE,
    )
    label(losses, "More confidence costs", "probability of the target", "loss of one token")
    _forms(forms, curves, classes, epsilon)
    for axes in (losses, forms):
        axes.set_ylim(0, 4)
        axes.get_legend().set_loc("upper center")
    return figure


def _target(axes: Axes, classes: int, epsilon: float) -> None:
    shown = min(classes, 8)
    places = range(shown)
    for shift, over, colour, name in (
        (-0.2, "all", BLUE, "ε/V on every class"),
        (0.2, "others", RED, "ε/(V−2) on all but target, padding"),
    ):
        q = distribution(classes, epsilon, over)[:shown].tolist()
        bars = axes.bar([place + shift for place in places], q, 0.38, color=colour, label=name)
        axes.bar_label(bars, [f"{value:.3g}" for value in q], fontsize=6, rotation=90, padding=2)
    words = [*SPECIALS, "target", *(f"word {i}" for i in range(2, shown))]
    axes.set_xticks(places, words[:shown], rotation=30, ha="right")
    title = f"The smoothed target, ε = {epsilon:g}, V = {classes:,}"
    label(axes, title, "class" if shown == classes else f"the first {shown} classes", "q")
    axes.set_ylim(0, 1.25)


def _forms(axes: Axes, curves: Curves, classes: int, epsilon: float) -> None:
    constant = entropy(classes, epsilon)
    _plot(axes, curves.confidence, curves.cross_entropy, RED, "cross-entropy(q, p)")
    _plot(axes, curves.confidence, curves.divergence, GREEN, "KL(q‖p), 0 at its best")
    (middle,) = zip(*measure(classes, epsilon, [0.5]), strict=True)
    x, top, bottom = middle[0], middle[3], middle[4]
    axes.annotate("", (x, top), (x, bottom), arrowprops={"arrowstyle": "<->", "color": "black"})
    apart = f"{constant:.3g} apart, the entropy of q"
    axes.annotate(apart, (x, top), (2, 12), textcoords="offset points", fontsize=8)
    label(axes, "Two forms, one gradient", "probability of the target", "loss of one token")


def _plot(axes: Axes, x: list[float], y: list[float], colour: str, name: str) -> None:
    axes.plot(x, y, color=colour, linewidth=1.6, label=name)
