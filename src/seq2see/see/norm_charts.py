"""Charts of the measurements in `norms`."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter, StrMethodFormatter

from seq2see.see import figures
from seq2see.see.norms import DEPTHS, NOISE, REVERSAL_LAYERS, Norms

STYLES = {"pre": (figures.BLUE, "o-"), "post": (figures.RED, "s-")}


def draw(norms: Norms) -> Figure:
    """Draw gradients by layer and depth, weight noise, training losses and the padding effect."""
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    panels = figure.subplots(2, 3)
    _gradients_by_layer(panels[0][0], norms)
    _last_gradient(panels[0][1], norms)
    _gradient_ratio(panels[0][2], norms)
    _shifts(panels[1][0], norms)
    _losses(panels[1][1], norms)
    _padding_effect(panels[1][2], norms)
    return figure


def _gradients_by_layer(axes: Axes, norms: Norms) -> None:
    deepest = DEPTHS[-1]
    for norm, by_depth in norms.gradients.items():
        _plot(axes, norm, range(1, deepest + 1), by_depth[-1])
    title = f"Gradients at initialisation, {deepest} layers"
    figures.label(axes, title, "layer", "gradient norm, feed-forward")
    axes.set_ylim(bottom=0)


def _last_gradient(axes: Axes, norms: Norms) -> None:
    for norm, by_depth in norms.gradients.items():
        _plot(axes, norm, DEPTHS, [layers[-1] for layers in by_depth])
    start = norms.gradients["pre"][0][-1]
    falling = [start * (DEPTHS[0] / depth) ** 0.5 for depth in DEPTHS]
    axes.plot(DEPTHS, falling, ":", color=figures.GREY, linewidth=1, label="∝ 1 / √layers")
    figures.label(axes, "Gradient of the last layer", "layers", "gradient norm, feed-forward")
    _depth_axis(axes)


def _gradient_ratio(axes: Axes, norms: Norms) -> None:
    for norm, by_depth in norms.gradients.items():
        _plot(axes, norm, DEPTHS, [layers[-1] / layers[0] for layers in by_depth])
    axes.axhline(1, color=figures.GREY, linewidth=0.8)
    figures.label(axes, "Last layer relative to the first", "layers", "gradient norm, last ÷ first")
    _depth_axis(axes)


def _shifts(axes: Axes, norms: Norms) -> None:
    for norm, shifts in norms.shifts.items():
        _plot(axes, norm, DEPTHS, shifts)
    start = norms.shifts["post"][0]
    rising = [start * (depth / DEPTHS[0]) ** 0.5 for depth in DEPTHS]
    axes.plot(DEPTHS, rising, ":", color=figures.GREY, linewidth=1, label="∝ √layers")
    shift = f"shift of the output, noise of {NOISE:g}"
    figures.label(axes, "Sensitivity to noise on the weights", "layers", shift)
    _depth_axis(axes)


def _losses(axes: Axes, norms: Norms) -> None:
    styles = [(figures.BLUE, "-"), (figures.RED, "-"), (figures.RED, "--")]
    for (name, losses), (colour, style) in zip(norms.losses.items(), styles, strict=True):
        axes.plot(range(1, len(losses) + 1), losses, style, color=colour, linewidth=1.2, label=name)
    title = f"Training {REVERSAL_LAYERS} layers to reverse words"
    figures.label(axes, title, "update", "training loss")
    axes.set_ylim(bottom=0)


def _padding_effect(axes: Axes, norms: Norms) -> None:
    styles = {"layer norm": (figures.BLUE, "o-"), "batch norm": (figures.GREEN, "^-")}
    for name, changes in norms.changes.items():
        colour, style = styles[name]
        axes.plot(
            norms.padding, changes, style, color=colour, markersize=4, linewidth=1.2, label=name
        )
    title = "Effect of padding on one sentence"
    figures.label(axes, title, "padding in the batch", "change of the sentence's output")
    axes.xaxis.set_major_formatter(PercentFormatter(1))


def _plot(axes: Axes, norm: str, x: Sequence[int], y: Sequence[float]) -> None:
    colour, style = STYLES[norm]
    axes.plot(x, y, style, color=colour, markersize=4, linewidth=1.2, label=f"{norm}-norm")


def _depth_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xticks(DEPTHS)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
