"""Merging and pruning layer by layer, for the words of a text or the patches of a picture."""

from collections.abc import Iterator, Sequence
from colorsys import hsv_to_rgb
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from seq2see.batches import collate
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.reduced import counts, operations, plan_of, reducible, with_plan
from seq2see.see.figures import GREY
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.table import open_model, task_of
from seq2see.tasks.text import TextTask

LETTER, ROW, MARGIN = 0.066, 0.46, 1.6  # inches: a letter, a layer, the titles of the layers
FADED = "#cccccc"


@dataclass(frozen=True)
class ReductionTrace:
    """The slot of each token of one input after each layer, and the cost of each layer."""

    slots: list[list[int]]  # by layer, by token: merged tokens share a slot; −1 once pruned
    operations: list[float]  # of each layer
    full_operations: list[float]  # of each layer if all tokens had been kept

    def remaining(self) -> list[int]:
        """Count the slots after each layer."""
        return [max(slots) + 1 for slots in self.slots]

    def titles(self) -> list[str]:
        """Name each layer with its number of tokens and its share of the operations."""
        tokens = len(self.slots[0])
        titles = []
        for i, count in enumerate(self.remaining()):
            share = self.operations[i] / self.full_operations[i]
            titles.append(f"layer {i + 1}: {count} of {tokens} tokens · {share:.0%} FLOPs")
        return titles

    def report(self, tokens: Sequence[str]) -> list[str]:
        """List for each layer its merged groups and the tokens that it pruned."""
        lines = []
        gone: set[int] = set()
        for title, slots in zip(self.titles(), self.slots, strict=True):
            parts = [title]
            merged = [" + ".join(tokens[i] for i in group) for group in groups(slots)]
            if merged:
                parts.append(f"merged: {', '.join(merged)}")
            pruned = [i for i, slot in enumerate(slots) if slot < 0 and i not in gone]
            if pruned:
                parts.append(f"pruned: {', '.join(tokens[i] for i in pruned)}")
            gone |= {*pruned}
            lines.append(" · ".join(parts))
        return lines


@dataclass(frozen=True)
class Subject:
    """A text or a picture, and the model that reads it."""

    model: Any
    batch: Any
    title: str
    tokens: list[str]  # of a text, with </s>; or "class", if there is one, and "row/column" patches
    pixels: Tensor | None = None  # (C, H, W), bytes
    grid: tuple[int, int] = (0, 0)

    def draw(self, trace: ReductionTrace) -> Figure:
        """Draw the reduction of this text or picture."""
        if self.pixels is None:
            return draw_text(trace, self.tokens, self.title)
        return draw_picture(trace, self.pixels, self.grid, self.title)


def read_subject(directory: Path, argument: str) -> Subject:
    """Open a model and read its input: a sentence, or the path of a picture."""
    opened = open_model(directory, "cpu", tasks=("translate", "classify", "images"))
    if isinstance(opened, PictureModel):
        return _picture(opened, argument)
    recipe = opened.recipe
    if not reducible(opened.model):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that can merge or prune"
        )
    task = task_of(recipe)
    assert isinstance(task, TextTask)
    tokenizer = task.encoder(opened.tokenizers).reader
    limit = recipe.data.max_length
    ids = tokenizer.encode(argument)
    if not 0 < len(ids) <= limit:
        raise InputError(
            f"the text has {len(ids)} tokens; the model takes 1 to data.max_length = {limit}"
        )
    tokens = [*tokenizer.pieces(argument), "</s>"]
    return Subject(opened.model, collate([(ids, [])], [0]), argument, tokens)


def _picture(pictures: PictureModel, path: str) -> Subject:
    pixels = pictures.read(path)
    rows, columns = pictures.model.grid
    tokens = [f"{row + 1}/{column + 1}" for row in range(rows) for column in range(columns)]
    if pictures.model.class_embedding is not None:
        tokens.insert(0, "class")
    batch = pictures.format.batch(pixels[None])
    return Subject(pictures.model, batch, Path(path).name, tokens, pixels, (rows, columns))


@torch.inference_mode()
def follow(model: Any, batch: Any) -> ReductionTrace:
    """Trace one input through a model that merges or prunes, with soft thresholds made hard."""
    plan = plan_of(model)
    if plan is None:
        raise InputError(
            "this model was trained neither to merge nor to prune; give an amount to reduce by"
        )
    model = with_plan(model, plan.hard())
    trace = Trace(weights=False)
    model.eval()(batch, trace)
    steps = trace.reductions
    tokens = torch.tensor([steps[0].source.shape[1]])
    return ReductionTrace(
        [step.source[0].tolist() for step in steps],
        operations(model.encoder, counts(tokens, steps), plan_of(model)),
        operations(model.encoder, [tokens] * (len(steps) + 1)),
    )


def groups(slots: Sequence[int]) -> list[list[int]]:
    """List the tokens that share a slot, in the order of the slots."""
    members: dict[int, list[int]] = {}
    for token, slot in enumerate(slots):
        members.setdefault(slot, []).append(token)
    return [group for slot, group in sorted(members.items()) if slot >= 0 and len(group) > 1]


def group_colour(group: Sequence[int]) -> str:
    """Pick a group's colour by the golden angle from its first token, stable across layers."""
    return to_hex(hsv_to_rgb((0.57 + 0.618 * group[0]) % 1, 0.75, 0.9))


def draw_text(trace: ReductionTrace, tokens: Sequence[str], title: str) -> Figure:
    """Draw a row of words per layer: merged ones share a colour and a box, pruned ones fade."""
    widths = [LETTER * max(len(token), 2) + 0.16 for token in tokens]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    rows = [list(range(len(tokens))), *trace.slots]
    size = (MARGIN + sum(widths) + 0.2, ROW * len(rows) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=9, parse_math=False)
    axes = figure.subplots()
    axes.set(xlim=(-MARGIN, sum(widths)), ylim=(-len(rows) + 0.3, 0.6))
    axes.axis("off")
    centred: Any = {"fontsize": 7, "ha": "center", "va": "center", "parse_math": False}
    for y, (name, slots) in enumerate(zip(_row_titles(trace), rows, strict=True)):
        axes.text(-MARGIN, -y, name, fontsize=7, va="center", color=GREY)
        for group in groups(slots):
            _join(axes, group, starts, widths, -y)
        for token, slot, start, width in zip(tokens, slots, starts, widths, strict=True):
            colour = FADED if slot < 0 else "black"
            axes.text(start + width / 2, -y, token, color=colour, **centred)
    return figure


def _row_titles(trace: ReductionTrace) -> list[str]:
    return ["input", *(title.replace(": ", "\n") for title in trace.titles())]


def _runs(group: Sequence[int]) -> Iterator[list[int]]:
    """Split a group into runs of neighbours: 2 3 4 7 8 → 2 3 4, 7 8."""
    for _, run in groupby(enumerate(group), key=lambda pair: pair[1] - pair[0]):
        yield [token for _, token in run]


def _join(
    axes: Axes, group: Sequence[int], starts: Sequence[float], widths: Sequence[float], y: float
) -> None:
    """Box each run of neighbours in a group, and connect the boxes by a line."""
    colour = group_colour(group)
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
    """Draw the picture per layer: merged patches share tint and outline, pruned ones are white."""
    panels = len(trace.slots) + 1
    columns = min(panels, 5)
    rows = -(-panels // columns)
    figure = Figure(figsize=(1.9 * columns, 2.2 * rows + 0.4), layout="constrained")
    figure.suptitle(title, fontsize=9, parse_math=False)
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    first = len(trace.slots[0]) - grid[0] * grid[1]  # skips the class token, if there is one
    layers = [list(range(grid[0] * grid[1])), *(slots[first:] for slots in trace.slots)]
    for panel in axes.flat:
        panel.axis("off")
    for panel, name, slots in zip(axes.flat, _row_titles(trace), layers, strict=False):
        _patches(panel, pixels, torch.tensor(slots).view(grid))
        panel.set_title(name, fontsize=7)
    return figure


def _patches(axes: Axes, pixels: Tensor, slots: Tensor) -> None:
    """Draw a picture (C, H, W) under the slots (rows, columns) of its patches."""
    height = pixels.shape[1] / slots.shape[0]
    width = pixels.shape[2] / slots.shape[1]
    extent = (0.0, float(pixels.shape[2]), float(pixels.shape[1]), 0.0)
    image = pixels.permute(1, 2, 0).numpy()
    if image.shape[2] == 1:
        image = image[..., 0]
    axes.imshow(image, cmap="gray", vmin=0, vmax=255, extent=extent)
    flat = slots.flatten().tolist()
    tints = {i: group_colour(group) for group in groups(flat) for i in group}
    for i, slot in enumerate(flat):
        row, column = divmod(i, slots.shape[1])
        patch = Rectangle((column * width, row * height), width, height, linewidth=0)
        if slot < 0:
            axes.add_patch(patch).set(facecolor="white", edgecolor=FADED, hatch="////")
        elif i in tints:
            axes.add_patch(patch).set(facecolor=(tints[i], 0.55))
    draw_borders(axes, slots, height, width)


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
