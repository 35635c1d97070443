"""Which tokens were merged and which were pruned, layer by layer: words of a text, or patches of a picture."""

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

from seq2see.batches import Batch, collate
from seq2see.errors import InputError
from seq2see.layers.reduction.encoder import Reducible, counts, operations
from seq2see.layers.trace import Trace
from seq2see.see.figures import GREY
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.table import load_pictures
from seq2see.tasks.translate import opened, recipe_of

LETTER, ROW, HEAD = 0.066, 0.46, 1.4  # inches: a letter, a layer, and what stands before its words
FADED = "#cccccc"


@dataclass(frozen=True)
class Journey:
    """Where the tokens of one text or picture are after each layer, and how much there was to compute."""

    places: list[list[int]]  # of each layer: the place of each token; −1 once it is pruned
    operations: list[float]  # of each layer
    untouched: list[float]  # of each layer, had all tokens stayed

    def left(self) -> list[int]:
        """How many places there are after each layer."""
        return [max(places) + 1 for places in self.places]

    def titles(self) -> list[str]:
        """A line for each layer."""
        tokens = len(self.places[0])
        shares = [ours / all for ours, all in zip(self.operations, self.untouched, strict=True)]
        counts = zip(self.left(), shares, strict=True)
        return [
            f"layer {i}: {n} of {tokens} · {share:.0%} FLOPs"
            for i, (n, share) in enumerate(counts, start=1)
        ]

    def lines(self, tokens: Sequence[str]) -> list[str]:
        """For a reader: each layer with its groups, and what it pruned."""
        found, gone = [], set[int]()
        for title, places in zip(self.titles(), self.places, strict=True):
            members = {
                place: [i for i, each in enumerate(places) if each == place]
                for place in sorted({*places})
            }
            pruned = [i for i in members.pop(-1, []) if i not in gone]
            gone |= {*pruned}
            merged = [
                " + ".join(tokens[i] for i in group) for group in members.values() if len(group) > 1
            ]
            parts = [f"merged: {', '.join(merged)}"] if merged else []
            parts += [f"pruned: {', '.join(tokens[i] for i in pruned)}"] if pruned else []
            found.append(" · ".join([title, *parts]))
        return found


@dataclass(frozen=True)
class Subject:
    """A text or a picture, and the model that reads it."""

    model: Reducible
    batch: Batch
    title: str
    tokens: list[
        str
    ]  # </s> last; of a picture the class token, if there is one, and the patches by row and column
    pixels: Tensor | None = None  # (C, H, W), bytes
    grid: tuple[int, int] = (0, 0)

    def draw(self, journey: Journey) -> Figure:
        if self.pixels is None:
            return draw_text(journey, self.tokens, self.title)
        return draw_picture(journey, self.pixels, self.grid, self.title)


def subject(directory: Path, what: str) -> Subject:
    """The sentence or the picture file that a model with an encoder of self-attention is to read."""
    recipe = recipe_of(directory, "translate", "classify", "images")
    if recipe.task == "images":
        return _picture(load_pictures(directory, "cpu"), what)
    recipe, pair, model = opened(directory, recipe.task)
    if not isinstance(model, Reducible):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that could merge or prune"
        )
    tokenizer, limit = (
        pair.source if recipe.task == "translate" else pair.target,
        recipe.data.max_length,
    )
    ids = tokenizer.encode(what)
    if not 0 < len(ids) <= limit:
        raise InputError(
            f"the text has {len(ids)} tokens; the model takes 1 to data.max_length = {limit}"
        )
    return Subject(model, collate([(ids, [])], [0]), what, [*tokenizer.pieces(what), "</s>"])


def _picture(found: PictureModel, path: str) -> Subject:
    pixels, (rows, columns) = found.read(path), found.model.grid
    names = [f"{row + 1}/{column + 1}" for row in range(rows) for column in range(columns)]
    return Subject(
        found.model,
        found.format.batch(pixels[None]),
        Path(path).name,
        names if found.model.class_embedding is None else ["class", *names],
        pixels,
        (rows, columns),
    )


@torch.inference_mode()
def follow(model: Reducible, batch: Batch) -> Journey:
    """The way of one text or picture through a model that merges or prunes, soft thresholds taken hard."""
    if model.plan is None:
        raise InputError(
            "this model was trained neither to merge nor to prune; say how much it is to"
        )
    model, trace = model.with_plan(model.plan.hard()), Trace(weights=False)
    model.eval()(batch, trace)
    steps = trace.reductions
    tokens = torch.tensor([steps[0].source.shape[1]])
    return Journey(
        [step.source[0].tolist() for step in steps],
        operations(model.encoder, counts(tokens, steps), model.plan),
        operations(model.encoder, [tokens] * (len(steps) + 1)),
    )


def draw_text(journey: Journey, tokens: Sequence[str], title: str) -> Figure:
    """A row of words for each layer: what was merged shares a colour and is joined, what was pruned fades."""
    widths = [LETTER * max(len(token), 2) + 0.16 for token in tokens]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    rows = [list(range(len(tokens))), *journey.places]
    figure = Figure(figsize=(HEAD + sum(widths) + 0.2, ROW * len(rows) + 0.5), layout="constrained")
    figure.suptitle(title, fontsize=9, parse_math=False)
    axes = figure.subplots()
    axes.set(xlim=(-HEAD, sum(widths)), ylim=(-len(rows) + 0.3, 0.6))
    axes.axis("off")
    for y, (name, places) in enumerate(zip(["before", *_short(journey)], rows, strict=True)):
        axes.text(-HEAD, -y, name, fontsize=7, va="center", color=GREY)
        for group in groups(places):
            _join(axes, group, starts, widths, -y)
        for token, place, start, width in zip(tokens, places, starts, widths, strict=True):
            colour = FADED if place < 0 else "black"
            axes.text(
                start + width / 2,
                -y,
                token,
                fontsize=7,
                ha="center",
                va="center",
                color=colour,
                parse_math=False,
            )
    return figure


def _short(journey: Journey) -> list[str]:
    return [title.replace(": ", "\n") for title in journey.titles()]


def groups(places: Sequence[int]) -> list[list[int]]:
    """The tokens that share a place, where there are several."""
    found: dict[int, list[int]] = {}
    for token, place in enumerate(places):
        found.setdefault(place, []).append(token)
    return [group for place, group in found.items() if place >= 0 and len(group) > 1]


def colour_of(group: Sequence[int]) -> str:
    """By the golden angle: the same for a group from layer to layer, and another for each group."""
    return to_hex(hsv_to_rgb((0.57 + 0.618 * group[0]) % 1, 0.75, 0.9))


def _runs(group: Sequence[int]) -> Iterator[list[int]]:
    """Neighbours together: 2 3 4 7 8 → 2 3 4, 7 8."""
    for _, run in groupby(enumerate(group), key=lambda each: each[1] - each[0]):
        yield [token for _, token in run]


def _join(
    axes: Axes, group: Sequence[int], starts: Sequence[float], widths: Sequence[float], y: float
) -> None:
    """A box around each run of the group's tokens, and a line from each run to the next."""
    colour, under = colour_of(group), y - 0.3 - 0.05 * (group[0] % 4)
    middles = []
    for run in _runs(group):
        left, right = starts[run[0]] + 0.04, starts[run[-1]] + widths[run[-1]] - 0.04
        box = FancyBboxPatch(
            (left + 0.03, y - 0.2),
            right - left - 0.06,
            0.4,
            boxstyle="round,pad=0.03",
            linewidth=0.8,
        )
        box.set(facecolor=(colour, 0.35), edgecolor=colour)
        axes.add_patch(box)
        middles.append((left + right) / 2)
    if len(middles) > 1:
        axes.plot(
            [middles[0], middles[-1]],
            [under, under],
            color=colour,
            linewidth=1,
            solid_capstyle="round",
        )
        axes.vlines(middles, under, y - 0.23, color=colour, linewidth=1)


def draw_picture(journey: Journey, pixels: Tensor, grid: tuple[int, int], title: str) -> Figure:
    """The picture, then each layer: patches of one place share a tint and an outline, what was pruned is white."""
    panels = len(journey.places) + 1
    columns = min(panels, 5)
    rows = -(-panels // columns)
    figure = Figure(figsize=(1.9 * columns, 2.2 * rows + 0.4), layout="constrained")
    figure.suptitle(title, fontsize=9, parse_math=False)
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    names = ["before", *_short(journey)]
    first = len(journey.places[0]) - grid[0] * grid[1]  # the class token is no patch
    layers = [list(range(grid[0] * grid[1])), *(places[first:] for places in journey.places)]
    for panel in axes.flat:
        panel.axis("off")
    for panel, name, places in zip(axes.flat, names, layers, strict=False):
        _patches(panel, pixels, torch.tensor(places).view(grid))
        panel.set_title(name, fontsize=7)
    return figure


def _patches(axes: Axes, pixels: Tensor, places: Tensor) -> None:
    """Bytes (C, H, W) under the places (rows, columns) of their patches."""
    height, width = pixels.shape[1] / places.shape[0], pixels.shape[2] / places.shape[1]
    extent = (0.0, float(pixels.shape[2]), float(pixels.shape[1]), 0.0)
    shown = pixels.permute(1, 2, 0).numpy()
    axes.imshow(
        shown if shown.shape[2] == 3 else shown[..., 0],
        cmap="gray",
        vmin=0,
        vmax=255,
        extent=extent,
    )
    flat = places.flatten().tolist()
    tints = {i: colour_of(group) for group in groups(flat) for i in group}
    for i, place in enumerate(flat):
        patch = Rectangle(
            (i % places.shape[1] * width, i // places.shape[1] * height), width, height, linewidth=0
        )
        if place < 0:
            axes.add_patch(patch).set(facecolor="white", edgecolor=FADED, hatch="////")
        elif i in tints:
            axes.add_patch(patch).set(facecolor=(tints[i], 0.55))
    borders = list(_borders(places, height, width))
    for colour, thickness in (("black", 2.0), ("white", 0.8)):  # one of them shows on any ground
        axes.add_collection(LineCollection(borders, colors=colour, linewidths=thickness))


def _borders(places: Tensor, height: float, width: float) -> Iterator[list[tuple[float, float]]]:
    """A line between any two patches side by side that are in different places."""
    for y, x in (places[:, 1:] != places[:, :-1]).nonzero().tolist():
        yield [((x + 1) * width, y * height), ((x + 1) * width, (y + 1) * height)]
    for y, x in (places[1:] != places[:-1]).nonzero().tolist():
        yield [(x * width, (y + 1) * height), ((x + 1) * width, (y + 1) * height)]
