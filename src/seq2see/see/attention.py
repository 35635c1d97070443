"""Attention figures, with queries as rows and keys as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from seq2see.errors import InputError
from seq2see.see.figures import ATTENTION, head_title, layer_and_head, shown
from seq2see.tasks.translator import AXES, Explanation

COLOURS = "Blues"
DARK_CELL = 0.55  # weights from here on have white figures on them
SMALLEST_FIGURE = 0.05  # smaller weights of a large map are not written out
KINDS = {"encoder": "encoder.self", "decoder": "decoder.self", "cross": "decoder.cross"}
TITLE_WIDTH = 6.5  # inches, for the longest of the titles
PAGE_HEIGHT = 12.0  # inches; what is taller is cut between kinds and layers
WORD_MARK = "· marks the space before a word"


@dataclass(frozen=True)
class Block:
    """Some layers of one kind of attention, a row of panels for each."""

    kind: str
    layers: dict[int, Tensor]  # (H, T, S) each
    rows: list[str]  # query tokens
    columns: list[str]  # key tokens

    @property
    def width(self) -> float:
        """Width in inches."""
        heads = len(next(iter(self.layers.values())))
        return 1.9 + heads * (_side(self.columns) + 0.12)

    @property
    def height(self) -> float:
        """Height in inches."""
        return 1.5 + len(self.layers) * self.row_height

    @property
    def row_height(self) -> float:
        """Height of the panels of one layer in inches."""
        return _side(self.rows) + 0.3

    def split(self) -> list["Block"]:
        """Cut between layers where the block is taller than a page."""
        per_page = max(1, int((PAGE_HEIGHT - 2.0) / self.row_height))
        layers = list(self.layers.items())
        return [
            Block(self.kind, dict(layers[i : i + per_page]), self.rows, self.columns)
            for i in range(0, len(layers), per_page)
        ]


def _side(tokens: Sequence[str]) -> float:
    return max(len(tokens), 7) * 0.13


def draw(
    explanation: Explanation, kind: str | None = None, layer: int | None = None
) -> list[Figure]:
    """Draw every head of all layers or one, of all kinds of attention or one, as pages.

    They share one page if they fit; otherwise, each kind has its own.
    """
    blocks = _blocks(explanation, kind, layer)
    if sum(block.height for block in blocks) <= PAGE_HEIGHT:
        return [_page(explanation, blocks)]
    return [_page(explanation, [part]) for block in blocks for part in block.split()]


def on_one_page(
    explanation: Explanation, kind: str | None = None, layer: int | None = None
) -> Figure:
    """Draw the same as one picture of any height."""
    return _page(explanation, _blocks(explanation, kind, layer))


def _page(explanation: Explanation, blocks: Sequence[Block]) -> Figure:
    heights = [block.height for block in blocks]
    width = max(TITLE_WIDTH, *(block.width for block in blocks))
    figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(f"{explanation.source}\n{explanation.target}", fontsize=10, parse_math=False)
    parts: Any = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)
    for part, block in zip(parts[:, 0], blocks, strict=True):
        _draw_block(part, block)
    return figure


def _draw_block(part: Any, block: Block) -> None:
    part.suptitle(ATTENTION[block.kind].capitalize(), fontsize=9, fontweight="bold")
    query, key = AXES[block.kind]
    layers = list(block.layers.items())
    panels = part.subplots(len(layers), len(layers[0][1]), squeeze=False)
    for i, (layer, heads) in enumerate(layers):
        for j, weights in enumerate(heads):
            axes = panels[i][j]
            image = panel(axes, weights, block.rows, block.columns, (query, key))
            axes.tick_params(labelleft=j == 0, labeltop=i == 0)
            axes.yaxis.label.set_visible(False)
            axes.xaxis.label.set_visible(False)
            axes.set_title(layer_and_head(layer, j), fontsize=7, y=0, pad=-3, va="top")
    marked = any("▁" in token for token in (*block.rows, *block.columns))
    part.supylabel(f"{query} ↓", fontsize=7)
    part.supxlabel(f"{key} →" + f"   ({WORD_MARK})" * marked, fontsize=7)
    _colour_bar(part, image, panels)


def _blocks(explanation: Explanation, kind: str | None, layer: int | None) -> list[Block]:
    title = ATTENTION[KINDS[kind]] if kind else "attention"
    names = [KINDS[kind]] if kind else [*KINDS.values()]
    stacks = {name: _layers(explanation.weights, name) for name in names}
    most = max(map(len, stacks.values()))
    if not most:
        raise InputError(f"this model has no {title} to draw")
    if layer is not None:
        _check_number("--layer", layer, most, title)
    blocks = []
    for name, layers in stacks.items():
        chosen = {i: heads for i, heads in layers.items() if layer in (None, i)}
        if chosen:
            first = name.replace(".", f".{next(iter(chosen))}.")
            blocks.append(Block(name, chosen, *explanation.tokens(first)))
    return blocks


def _layers(weights: dict[str, Tensor], kind: str) -> dict[int, Tensor]:
    """Collect the weights (H, T, S) of one kind of attention, first layer first."""
    stack, part = kind.split(".")
    layers: dict[int, Tensor] = {}
    while (name := f"{stack}.{len(layers)}.{part}") in weights:
        layers[len(layers)] = weights[name]
    return layers


def _check_number(option: str, index: int, count: int, title: str) -> None:
    if not 0 <= index < count:
        raise InputError(f"{option} {index + 1}: must be at most {count} for {title}")


def draw_head(explanation: Explanation, kind: str, layer: int, head: int) -> Figure:
    """Draw one head large, with its weights in figures."""
    name = KINDS[kind]
    (block,) = _blocks(explanation, kind, layer)
    heads = block.layers[layer]
    _check_number("--head", head, len(heads), f"{ATTENTION[name]}, layer {layer + 1}")
    size = (3.0 + 0.36 * len(block.columns), 2.2 + 0.32 * len(block.rows))
    figure = Figure(figsize=size, layout="constrained")
    title = head_title(name.replace(".", f".{layer}."), head)
    figure.suptitle(
        f"{title[0].upper()}{title[1:]}\n{explanation.source}\n{explanation.target}",
        fontsize=11,
        parse_math=False,
    )
    axes = figure.subplots()
    image = panel(axes, heads[head], block.rows, block.columns, AXES[name], size=11)
    _write_weights(axes, heads[head])
    _colour_bar(figure, image, [axes], size=10)
    return figure


def _write_weights(axes: Axes, weights: Tensor) -> None:
    for t, s in (weights >= SMALLEST_FIGURE).nonzero().tolist():
        weight = float(weights[t, s])
        colour = "white" if weight >= DARK_CELL else "black"
        text = f"{weight:.2f}".removeprefix("0")
        axes.text(s, t, text, fontsize=8, ha="center", va="center", color=colour)


def with_gold(
    weights: Tensor,
    gold: set[tuple[int, int]],
    source: Sequence[str],
    target: Sequence[str],
    title: str,
) -> Figure:
    """Draw one head's weights (target words, source words) beside the gold alignment."""
    size = (3.6 + 0.42 * len(source), 2.3 + 0.22 * len(target))
    figure = Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2)
    links = weights.new_zeros(len(target), len(source))
    for i, j in gold:
        links[j, i] = 1.0
    names = ("target word", "source word")
    image = panel(left, weights, target, source, names, size=8)
    panel(right, links, target, source, names, size=8)
    left.set_title(title, fontsize=9)
    right.set_title("gold alignment", fontsize=9)
    _colour_bar(figure, image, [left, right])
    return figure


def _colour_bar(figure: Any, image: AxesImage, axes: Any, size: int = 7) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=25, pad=0.02)
    bar.set_label("attention weight", fontsize=size)
    bar.ax.tick_params(labelsize=size)


def panel(
    axes: Axes,
    weights: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    names: tuple[str, str],
    size: int = 6,
) -> AxesImage:
    """Draw one map of weights (T, S) under the names of its rows and of its columns."""
    image = axes.imshow(
        weights.numpy(), cmap=COLOURS, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    axes.tick_params(
        length=0, labelsize=size, top=False, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xticks(range(len(columns)), shown(columns), rotation=90, parse_math=False)
    axes.set_yticks(range(len(rows)), shown(rows), parse_math=False)
    axes.set_ylabel(names[0], fontsize=size + 1)
    axes.set_xlabel(names[1], fontsize=size + 1)
    for spine in axes.spines.values():
        spine.set_linewidth(0.4)
    return image
