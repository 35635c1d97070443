"""Pictures of one sentence on its way from ids to logits: every tensor's shape and parameters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from seq2see.see.figures import BLUE, GREEN, GREY, ORANGE
from seq2see.see.numbers import Numbers
from seq2see.see.tables import table
from seq2see.see.tensor_shapes import NamedTensor

HEADS = ["tensor", "meaning", "axes", "shape", "parameters"]
SIDES = {"encoder": BLUE, "decoder": GREEN, "ids and logits": ORANGE, "embeddings": GREY}
NOTE = (
    "names as in the code, which counts from 0; layers after the first are one line each\n"
    "shapes: batch × positions × features, weights: batch × heads × queries × keys"
)
LINE = 0.24  # inches
MOST_LINES = 24  # of a column


def numbers(tensors: Sequence[NamedTensor]) -> list[Numbers]:
    """List the tensors as a table."""
    rows = [
        [one.name, one.what, ", ".join(one.axes), _shape(one), f"{one.parameters:,}"]
        for one in tensors
    ]
    return [Numbers("Every tensor from ids to logits", HEADS, [*rows, _total(tensors)])]


def _total(tensors: Sequence[NamedTensor]) -> list[str]:
    return ["all", "", "", "", f"{sum(one.parameters for one in tensors):,}"]


def _shape(one: NamedTensor) -> str:
    return " × ".join(map(str, one.shape))


def report(tensors: Sequence[NamedTensor]) -> list[str]:
    """Tabulate names, shapes and parameters, as the picture shows them."""
    rows = [[one.name, _shape(one), f"{one.parameters:,}"] for one in folded(tensors)]
    return table([["tensor", "shape", "parameters"], *rows, ["all", "", _total(tensors)[-1]]])


def folded(tensors: Sequence[NamedTensor]) -> list[NamedTensor]:
    """Fold each layer but the first of a stack into one line, with all of its parameters."""
    inside = [(one, _later_layer(one.name)) for one in tensors]
    counts: Counter[str] = Counter()
    for one, layer in inside:
        counts[layer or one.name] += one.parameters
    shown = [one for one, layer in inside if layer in (None, one.name)]
    # A table used twice is counted where it is first used.
    return [replace(one, parameters=counts.pop(one.name, 0)) for one in shown]


def _later_layer(name: str) -> str | None:
    """Name the layer that a tensor is part of, unless it is the first one or none."""
    parts = name.split(".")
    if len(parts) < 2 or not parts[1].isdigit() or parts[1] == "0":
        return None
    return ".".join(parts[:2])


def draw(tensors: Sequence[NamedTensor], title: str) -> Figure:
    """Draw a line for each tensor, with a bar as long as its share of the parameters."""
    tensors = folded(tensors)
    columns = -(-len(tensors) // MOST_LINES)
    lines = -(-len(tensors) // columns)
    figure = Figure(figsize=(7.2 * columns, LINE * lines + 1.8), layout="constrained")
    total = sum(one.parameters for one in tensors)
    figure.suptitle(f"{title}\n{total:,} parameters", fontsize=12, parse_math=False)
    panels = figure.subplots(1, columns, squeeze=False)[0]
    most = max(one.parameters for one in tensors)
    for i, axes in enumerate(panels):
        _column(axes, tensors[i * lines : (i + 1) * lines], lines, most)
    keys = [Patch(color=colour, label=side) for side, colour in SIDES.items()]
    legend = figure.legend(
        handles=keys, loc="outside lower center", ncols=len(SIDES), frameon=False, fontsize=9
    )
    legend.set_title(NOTE)
    legend.get_title().set_fontsize(9)
    return figure


def _column(axes: Axes, tensors: Sequence[NamedTensor], lines: int, most: int) -> None:
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(lines - 0.4, -1.4))
    for x, head, side in ((0.02, "tensor", "left"), (0.66, "shape", "right")):
        axes.text(x, -1, head, fontsize=9, fontweight="bold", ha=side, va="center")
    axes.text(0.7, -1, "parameters", fontsize=9, fontweight="bold", va="center")
    for y, one in enumerate(tensors):
        colour = SIDES[_side(one.name)]
        axes.plot([0, 0], [y - 0.4, y + 0.4], color=colour, linewidth=4, solid_capstyle="butt")
        axes.text(0.02, y, one.name, fontsize=8, va="center", parse_math=False)
        axes.text(0.66, y, _shape(one), fontsize=8, ha="right", va="center")
        if one.parameters:
            length = 0.18 * one.parameters / most
            axes.barh(y, length, 0.6, 0.7, color=colour)
            axes.text(0.71 + length, y, f"{one.parameters:,}", fontsize=8, va="center")


def _side(name: str) -> str:
    if name in ("source", "target", "output"):
        return "ids and logits"
    if "embedding" in name or "positions" in name:
        return "embeddings"
    return "encoder" if name.startswith("encoder") else "decoder"
