"""The charts of what `norms` measures."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

from seq2see.see import figures
from seq2see.see.norms import DEPTHS, NUDGE, Norms

LOOKS = {"pre": (figures.BLUE, "o-"), "post": (figures.RED, "s-")}


def draw(found: Norms) -> Figure:
    """Six charts: gradients at the start, the shift of the output, three trainings, and two kinds of norm."""
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    panels = figure.subplots(2, 3)
    _by_layer(panels[0][0], found)
    _last(panels[0][1], found)
    _ratio(panels[0][2], found)
    _moved(panels[1][0], found)
    _losses(panels[1][1], found)
    _companions(panels[1][2], found)
    return figure


def _by_layer(axes: Axes, found: Norms) -> None:
    for norm, by_depth in found.gradients.items():
        _line(axes, norm, range(1, DEPTHS[-1] + 1), by_depth[-1])
    figures.label(
        axes, f"A stack of {DEPTHS[-1]} at its start", "layer", "gradient norm, feed-forward"
    )
    axes.set_ylim(bottom=0)


def _last(axes: Axes, found: Norms) -> None:
    for norm, by_depth in found.gradients.items():
        _line(axes, norm, DEPTHS, [each[-1] for each in by_depth])
    start = found.gradients["pre"][0][-1]
    falling = [start * (DEPTHS[0] / depth) ** 0.5 for depth in DEPTHS]
    axes.plot(DEPTHS, falling, ":", color=figures.GREY, linewidth=1, label="∝ 1 / √layers")
    figures.label(axes, "The last layer, by depth", "layers", "gradient norm, feed-forward")
    _scale(axes)
    axes.set_ylim(bottom=0)


def _ratio(axes: Axes, found: Norms) -> None:
    for norm, by_depth in found.gradients.items():
        _line(axes, norm, DEPTHS, [each[-1] / each[0] for each in by_depth])
    axes.axhline(1, color=figures.GREY, linewidth=0.8)
    figures.label(axes, "The last layer against the first", "layers", "gradient norm, last ÷ first")
    _scale(axes)
    axes.set_ylim(bottom=0)


def _moved(axes: Axes, found: Norms) -> None:
    for norm, by_depth in found.moved.items():
        _line(axes, norm, DEPTHS, by_depth)
    start = found.moved["post"][0]
    rising = [start * (depth / DEPTHS[0]) ** 0.5 for depth in DEPTHS]
    axes.plot(DEPTHS, rising, ":", color=figures.GREY, linewidth=1, label="∝ √layers")
    figures.label(
        axes, "How far a small step carries", "layers", f"shift of the output, weights ± {NUDGE:g}"
    )
    _scale(axes)
    axes.set_ylim(bottom=0)


def _losses(axes: Axes, found: Norms) -> None:
    looks = [(figures.BLUE, "-"), (figures.RED, "-"), (figures.RED, "--")]
    for (name, losses), (colour, style) in zip(found.losses.items(), looks, strict=True):
        axes.plot(range(1, len(losses) + 1), losses, style, color=colour, linewidth=1.2, label=name)
    figures.label(axes, "Six layers learn to write backwards", "update", "loss")
    axes.set_ylim(bottom=0)


def _companions(axes: Axes, found: Norms) -> None:
    looks = {"layer norm": (figures.BLUE, "o-"), "batch norm": (figures.GREEN, "^-")}
    for name, values in found.changed.items():
        colour, mark = looks[name]
        axes.plot(
            found.padding, values, mark, color=colour, markersize=4, linewidth=1.2, label=name
        )
    figures.label(
        axes,
        "One sentence, its companion grows",
        "padding in the batch",
        "change of the sentence's output",
    )
    axes.xaxis.set_major_formatter(PercentFormatter(1))


def _line(axes: Axes, norm: str, x: Sequence[int], y: Sequence[float]) -> None:
    colour, mark = LOOKS[norm]
    axes.plot(x, y, mark, color=colour, markersize=4, linewidth=1.2, label=norm)


def _scale(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xticks(DEPTHS)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
