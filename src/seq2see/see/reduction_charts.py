"""Pictures of merging and pruning: words in joined boxes, patches under the size of their group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from seq2see.see.figures import CURVES, GREY, shown
from seq2see.see.reduction_trace import ReductionTrace, groups

LETTER, ROW, MARGIN = 0.066, 0.46, 1.6  # inches: a letter, a layer, the titles of the layers
FADED = "#aaaaaa"
BOUNDS = (2, 3, 4, 6, 10, 20, 50)  # tokens in a group, from where a colour begins
SIZES = matplotlib.colormaps["viridis"]
NORM = BoundaryNorm(BOUNDS, SIZES.N, extend="max")


def draw_text(trace: ReductionTrace, tokens: Sequence[str], title: str) -> Figure:
    """Draw a row of words per layer: merged ones share a colour and a box, pruned ones fade."""
    tokens = shown(tokens)
    colours = _colours(trace)
    widths = [LETTER * max(len(token), 2) + 0.16 for token in tokens]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    rows = [list(range(len(tokens))), *trace.slots]
    size = (MARGIN + sum(widths) + 0.2, ROW * len(rows) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=10, parse_math=False)
    figure.supxlabel(_meaning(trace), fontsize=8)
    axes = figure.subplots()
    axes.set(xlim=(-MARGIN, sum(widths)), ylim=(-len(rows) + 0.3, 0.6))
    axes.axis("off")
    centred: Any = {"fontsize": 7, "ha": "center", "va": "center", "parse_math": False}
    for y, (name, slots) in enumerate(zip(_row_titles(trace), rows, strict=True)):
        axes.text(-MARGIN, -y, name, fontsize=7, va="center", color=GREY)
        for group in groups(slots):
            _join(axes, group, (starts, widths), -y, colours[group[0]])
        for token, slot, start, width in zip(tokens, slots, starts, widths, strict=True):
            colour = FADED if slot < 0 else "black"
            axes.text(start + width / 2, -y, token, color=colour, **centred)
    return figure


def _colours(trace: ReductionTrace) -> dict[int, str]:
    """Colour each group by its first token, so that it keeps its colour from layer to layer."""
    firsts = sorted({group[0] for slots in trace.slots for group in groups(slots)})
    return {first: CURVES[i % len(CURVES)][0] for i, first in enumerate(firsts)}


def _meaning(trace: ReductionTrace) -> str:
    """Say what boxes and grey words mean, where there are any."""
    parts = []
    if any(groups(slots) for slots in trace.slots):
        parts.append("joined boxes of one colour are one token from that layer on")
    if any(slot < 0 for slots in trace.slots for slot in slots):
        parts.append("grey words are pruned")
    return "; ".join(parts)


def _row_titles(trace: ReductionTrace) -> list[str]:
    return ["input", *(title.replace(": ", "\n") for title in trace.titles())]


def _runs(group: Sequence[int]) -> Iterator[list[int]]:
    """Split a group into runs of neighbours: 2 3 4 7 8 → 2 3 4, 7 8."""
    for _, run in groupby(enumerate(group), key=lambda pair: pair[1] - pair[0]):
        yield [token for _, token in run]


def _join(
    axes: Axes,
    group: Sequence[int],
    places: tuple[Sequence[float], Sequence[float]],
    y: float,
    colour: str,
) -> None:
    """Box each run of neighbours in a group, and connect the boxes by a line."""
    starts, widths = places
    centres = []
    for run in _runs(group):
        left = starts[run[0]] + 0.04
        right = starts[run[-1]] + widths[run[-1]] - 0.04
        box = FancyBboxPatch(
            (left + 0.03, y - 0.2),
            right - left - 0.06,
            0.4,
            boxstyle="round,pad=0.03",
            linewidth=0.8,
        )
        box.set(facecolor=(colour, 0.35), edgecolor=colour)
        axes.add_patch(box)
        centres.append((left + right) / 2)
    if len(centres) > 1:
        below = y - 0.3 - 0.05 * (group[0] % 4)  # four heights, so that fewer lines overlap
        ends = [centres[0], centres[-1]]
        axes.plot(ends, [below, below], color=colour, linewidth=1, solid_capstyle="round")
        axes.vlines(centres, below, y - 0.23, color=colour, linewidth=1)


def draw_picture(
    trace: ReductionTrace, pixels: Tensor, grid: tuple[int, int], title: str
) -> Figure:
    """Draw the picture per layer; the colour of merged patches is the size of their group."""
    panels = len(trace.slots) + 1
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = Figure(figsize=(2.6 * columns + 1.2, 3.1 * rows + 0.6), layout="constrained")
    figure.suptitle(title, fontsize=10, parse_math=False)
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    patches = grid[0] * grid[1]
    first = len(trace.slots[0]) - patches  # 1 after a class token
    layers = [list(range(first + patches)), *trace.slots]
    for panel in axes.flat:
        panel.axis("off")
    for panel, name, slots in zip(axes.flat, _row_titles(trace), layers, strict=False):
        drawing = _Patches(panel, pixels, torch.tensor(slots[first:]).view(grid))
        drawing.draw(_sizes(slots)[first:])
        if first:
            drawing.draw_class_token(_sizes(slots)[0])
        panel.set_title(name, fontsize=8)
    scale = ScalarMappable(NORM, SIZES)
    bar = figure.colorbar(scale, ax=axes, shrink=0.6, aspect=25, extend="max")
    bar.set_label("tokens merged into one", fontsize=8)
    bar.set_ticks(BOUNDS[:-1], labels=[str(bound) for bound in BOUNDS[:-1]], fontsize=8)
    bar.ax.minorticks_off()
    if any(slot < 0 for slots in trace.slots for slot in slots):
        figure.supxlabel("hatched: pruned", fontsize=8)
    return figure


def _sizes(slots: Sequence[int]) -> list[int]:
    """Count the tokens in the slot of each token; 0 for a pruned one."""
    count = Counter(slots)
    return [0 if slot < 0 else count[slot] for slot in slots]


@dataclass(frozen=True)
class _Patches:
    """A picture (C, H, W) under the slots (rows, columns) of its patches."""

    axes: Axes
    pixels: Tensor
    slots: Tensor

    @property
    def height(self) -> float:
        """Pixels of a patch from top to bottom."""
        return self.pixels.shape[1] / self.slots.shape[0]

    @property
    def width(self) -> float:
        """Pixels of a patch from left to right."""
        return self.pixels.shape[2] / self.slots.shape[1]

    def draw(self, sizes: Sequence[int]) -> None:
        """Draw the picture, the size of each group that merged, and lines between slots."""
        _, rows, columns = self.pixels.shape
        image = self.pixels.permute(1, 2, 0).expand(-1, -1, 3).numpy()
        self.axes.imshow(image, extent=(0.0, float(columns), float(rows), 0.0))
        for i, size in enumerate(sizes):
            row, column = divmod(i, self.slots.shape[1])
            self._mark(column * self.width, row * self.height, size)
        draw_borders(self.axes, self.slots, self.height, self.width)

    def _mark(self, x: float, y: float, size: int) -> None:
        if size == 1:
            return
        patch = self.axes.add_patch(Rectangle((x, y), self.width, self.height, linewidth=0))
        if size == 0:
            patch.set(facecolor="white", edgecolor=FADED, hatch="////")
        else:
            patch.set(facecolor=SIZES(NORM(size)), alpha=0.65)

    def draw_class_token(self, size: int) -> None:
        """Draw the class token, which is no part of the picture, as a square below it."""
        y = self.pixels.shape[1] + 0.5 * self.height
        square = Rectangle((0, y), self.width, self.height, clip_on=False, linewidth=1)
        square.set(facecolor=SIZES(NORM(size)) if size > 1 else "white", edgecolor="black")
        self.axes.add_patch(square)
        state = {0: "pruned", 1: "alone"}.get(size, "merged")
        self.axes.text(
            1.5 * self.width, y + self.height / 2, f"class token: {state}", fontsize=7, va="center"
        )
        self.axes.set_ylim(y + 1.5 * self.height, 0)


def draw_borders(
    axes: Axes, slots: Tensor, height: float = 1.0, width: float = 1.0, thickness: float = 2.0
) -> None:
    """Draw a line between any two neighbouring patches in different slots (rows, columns)."""
    borders = list(_borders(slots, height, width))
    for colour, part in (("black", 1.0), ("white", 0.4)):  # visible on light and dark
        axes.add_collection(LineCollection(borders, colors=colour, linewidths=part * thickness))


def _borders(slots: Tensor, height: float, width: float) -> Iterator[list[tuple[float, float]]]:
    """Yield the ends of each line, in units of a patch's height and width."""
    for y, x in (slots[:, 1:] != slots[:, :-1]).nonzero().tolist():
        yield [((x + 1) * width, y * height), ((x + 1) * width, (y + 1) * height)]
    for y, x in (slots[1:] != slots[:-1]).nonzero().tolist():
        yield [(x * width, (y + 1) * height), ((x + 1) * width, (y + 1) * height)]
