"""Charts of what heads do: how sharp they are, where they read, and which of them aligns words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.see.figures import ATTENTION, RED, head_title
from seq2see.see.head_statistics import HeadStatistics
from seq2see.see.tables import table
from seq2see.text import captions
from seq2see.text.captions import Caption

# Field, title, unit, and the colour map's ends; None: the largest value.
FIGURES: list[tuple[str, str, str, float | None]] = [
    ("entropy", "Entropy", "nats; 0: all weight on one key", None),
    ("distance", "Mean distance", "positions between query and key", None),
    ("previous", "Previous token", "share of the weight", 1.0),
    ("same", "Same position", "share of the weight", 1.0),
    ("next", "Next token", "share of the weight", 1.0),
    ("end", "Source's </s>", "share of the weight", 1.0),
    ("error_rate", "Alignment error", "0: agrees with the gold links", 1.0),
]
MISSING = "–"


def captions_for(config: DataConfig, count: int) -> list[Caption]:
    """Generate test captions in the direction of a model; another language pair has none."""
    languages = (config.source, config.target)
    if config.source != config.target and {*languages} <= {*captions.LANGUAGES}:
        return captions.generate("test", count, languages=languages)
    known = ", ".join(captions.LANGUAGES)
    pair = f"{config.source} → {config.target}"
    raise InputError(
        f"the captions are in two of {known}, the model is {pair}: give --source, --reference"
    )


def aligner(statistics: Sequence[HeadStatistics]) -> HeadStatistics | None:
    """Choose the head that agrees best with the gold alignments, if there are any."""
    rated = [(one.error_rate, i) for i, one in enumerate(statistics) if one.error_rate is not None]
    return statistics[min(rated)[1]] if rated else None


def report(statistics: Sequence[HeadStatistics]) -> list[str]:
    """Tabulate every head, and name the aligner last."""
    rows = [["", *(title for _, title, _, _ in FIGURES)]]
    for one in statistics:
        rows.append([head_title(one.layer, one.head), *(_cell(one, name) for name, *_ in FIGURES)])
    lines = table(rows)
    best = aligner(statistics)
    if best is not None:
        title = head_title(best.layer, best.head)
        lines += ["", f"the aligner: {title}, alignment error rate {best.error_rate:.1%}"]
    return lines


def _cell(one: HeadStatistics, name: str) -> str:
    value = getattr(one, name)
    return MISSING if value is None else f"{value:.2f}"


def draw(statistics: Sequence[HeadStatistics]) -> Figure:
    """Draw a map (layers, heads) of each figure, a row for each kind of attention."""
    kinds = [kind for kind in ATTENTION if _of_kind(statistics, kind)]
    layers = max(len(_layers(statistics, kind)) for kind in kinds)
    heads = 1 + max(one.head for one in statistics)
    size = (1.2 + len(FIGURES) * (0.34 * heads + 0.75), 0.9 + len(kinds) * (0.34 * layers + 1.15))
    figure = Figure(figsize=size, layout="constrained")
    best = aligner(statistics)
    title = "What each head does"
    if best is not None:
        name = head_title(best.layer, best.head)
        title += f"\nthe aligner, framed: {name}, alignment error rate {best.error_rate:.1%}"
    figure.suptitle(title, fontsize=12)
    parts: Any = figure.subfigures(len(kinds), 1, squeeze=False)[:, 0]
    for part, kind in zip(parts, kinds, strict=True):
        _draw_kind(part, statistics, kind, best)
    return figure


def _of_kind(statistics: Sequence[HeadStatistics], kind: str) -> list[HeadStatistics]:
    stack, part = kind.split(".")
    return [one for one in statistics if one.layer.split(".")[::2] == [stack, part]]


def _layers(statistics: Sequence[HeadStatistics], kind: str) -> list[str]:
    return list(dict.fromkeys(one.layer for one in _of_kind(statistics, kind)))


def _draw_kind(
    part: Any, statistics: Sequence[HeadStatistics], kind: str, best: HeadStatistics | None
) -> None:
    part.suptitle(ATTENTION[kind].capitalize(), fontsize=11, fontweight="bold")
    panels = part.subplots(1, len(FIGURES))
    layers = _layers(statistics, kind)
    for i, (axes, (field, title, unit, most)) in enumerate(zip(panels, FIGURES, strict=True)):
        values = np.full((len(layers), 1 + max(one.head for one in statistics)), np.nan)
        for one in _of_kind(statistics, kind):
            value = getattr(one, field)
            values[layers.index(one.layer), one.head] = np.nan if value is None else value
        if np.isnan(values).all():
            axes.set_axis_off()
            continue
        top = most or max(getattr(one, field) for one in statistics)
        _map(axes, values, top)
        axes.set_title(f"{title}\n", fontsize=9, fontweight="bold")
        axes.text(0.5, 1.03, unit, transform=axes.transAxes, fontsize=6.5, ha="center")
        axes.set_xlabel("head", fontsize=8)
        axes.set_ylabel("layer", fontsize=8)
        axes.yaxis.label.set_visible(i == 0)
        if field == "error_rate" and best is not None and best.layer in layers:
            _frame(axes, layers.index(best.layer), best.head)


def _map(axes: Any, values: Any, top: float) -> None:
    """Draw values (layers, heads), each written in its cell."""
    axes.imshow(values, cmap="Blues", vmin=0, vmax=top, aspect="auto")
    for axis, count in ((axes.yaxis, values.shape[0]), (axes.xaxis, values.shape[1])):
        axis.set_ticks(range(count), [str(i + 1) for i in range(count)])
    axes.tick_params(length=0, labelsize=8)
    for (layer, head), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        colour = "white" if value > 0.55 * top else "black"
        text = f"{value:.2f}" if value < 9.995 else f"{value:.0f}"
        axes.text(head, layer, text, fontsize=7, ha="center", va="center", color=colour)


def _frame(axes: Any, layer: int, head: int) -> None:
    x = [head - 0.5, head + 0.5, head + 0.5, head - 0.5, head - 0.5]
    y = [layer - 0.5, layer - 0.5, layer + 0.5, layer + 0.5, layer - 0.5]
    axes.plot(x, y, color=RED, linewidth=2.5, clip_on=False)
