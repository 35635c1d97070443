"""Attention figures, with queries as rows and keys as columns, and the style of all figures."""

import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from seq2see.errors import InputError
from seq2see.see import fonts
from seq2see.tasks.translator import Explanation

COLOURS = "Blues"
BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"  # safe for colour blindness
MAX_PIXELS = 10_000  # per side: a very long sentence lowers the resolution instead
TITLE_WIDTH = 6.5  # inches, for the longest of the titles
ATTENTION = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "cross-attention",
}
AXES = {
    "encoder.self": "rows are query positions, columns are key positions",
    "decoder.self": "rows are query positions, columns are key positions",
    "decoder.cross": "rows are target queries, columns are source keys",
}


def layer_and_head(layer: int, head: int) -> str:
    """Name a head for people, who count from 1: (1, 2) → "layer 2, head 3"."""
    return f"layer {layer + 1}, head {head + 1}"


def head_title(name: str, head: int) -> str:
    """Spell out a trace name: ("decoder.1.cross", 2) → "cross-attention, layer 2, head 3"."""
    stack, layer, kind = name.split(".")
    return f"{ATTENTION[f'{stack}.{kind}']}, {layer_and_head(int(layer), head)}"


@dataclass(frozen=True)
class Block:
    """The heads of one kind of attention, a row of panels for each layer."""

    title: str
    layers: list[Tensor]  # (H, T, S) each
    rows: list[str]  # query tokens
    columns: list[str]  # key tokens

    @property
    def width(self) -> float:
        """Width in inches."""
        return 1.0 + len(self.layers[0]) * (_side(self.columns) + 0.12)

    @property
    def height(self) -> float:
        """Height in inches."""
        return 1.3 + len(self.layers) * (_side(self.rows) + 0.3)


def _side(tokens: Sequence[str]) -> float:
    return max(len(tokens), 7) * 0.13


def attention(explanation: Explanation) -> Figure:
    """Draw every head of every layer, a block for each kind of attention that the model has."""
    blocks = _blocks(explanation)
    if not blocks:
        raise InputError("this model has no attention to draw")
    heights = [block.height for block in blocks]
    width = max(TITLE_WIDTH, *(block.width for block in blocks))
    figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(f"{explanation.source}\n{explanation.target}", fontsize=10, parse_math=False)
    parts: Any = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)
    for part, block in zip(parts[:, 0], blocks, strict=True):
        part.suptitle(block.title, fontsize=9, fontweight="bold")
        axes = part.subplots(len(block.layers), len(block.layers[0]), squeeze=False)
        for i, layer in enumerate(block.layers):
            for j, weights in enumerate(layer):
                rows = block.rows if j == 0 else None
                columns = block.columns if i == 0 else None
                panel(axes[i][j], weights, rows, columns)
                axes[i][j].set_xlabel(layer_and_head(i, j), fontsize=6, labelpad=2)
    return figure


def _blocks(explanation: Explanation) -> list[Block]:
    tokens = {
        "encoder.self": (explanation.source_tokens, explanation.source_tokens),
        "decoder.self": (explanation.target_in, explanation.target_in),
        "decoder.cross": (explanation.target_out, explanation.source_tokens),
    }
    blocks = []
    for kind, (rows, columns) in tokens.items():
        layers = _layers(explanation.weights, kind)
        if layers:
            title = f"{ATTENTION[kind].capitalize()}: {AXES[kind]}"
            blocks.append(Block(title, layers, rows, columns))
    return blocks


def _layers(weights: dict[str, Tensor], kind: str) -> list[Tensor]:
    """Collect the weights (H, T, S) of one kind of attention, first layer first."""
    stack, part = kind.split(".")
    layers: list[Tensor] = []
    while (name := f"{stack}.{len(layers)}.{part}") in weights:
        layers.append(weights[name])
    return layers


def alignment(
    weights: Tensor,
    gold: set[tuple[int, int]],
    source: Sequence[str],
    target: Sequence[str],
    title: str,
) -> Figure:
    """Draw one head's weights (target words, source words) beside the gold alignment."""
    size = (2.4 + 0.42 * len(source), 2.0 + 0.22 * len(target))
    figure = Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2)
    panel(left, weights, target, source)
    left.set_xlabel(title, fontsize=8)
    links = weights.new_zeros(len(target), len(source))
    for i, j in gold:
        links[j, i] = 1.0
    panel(right, links, target, source)
    right.set_xlabel("gold alignment", fontsize=8)
    return figure


def panel(
    axes: Axes, weights: Tensor, rows: Sequence[str] | None, columns: Sequence[str] | None
) -> None:
    """Draw one map of weights (T, S), with token labels where they are given."""
    axes.imshow(
        weights.numpy(), cmap=COLOURS, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    axes.tick_params(
        length=0, labelsize=6, top=False, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xticks(range(len(columns or [])), columns or [], rotation=90, parse_math=False)
    axes.set_yticks(range(len(rows or [])), rows or [], parse_math=False)
    for spine in axes.spines.values():
        spine.set_linewidth(0.4)


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Label a chart and its axes; add a legend if its lines are named."""
    axes.set_title(title, fontsize=9, fontweight="bold")
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)


def check(path: Path) -> None:
    """Refuse a path to which no figure can be written, before the work is done."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"--out {path}: must end in .png or .svg")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--out {path}: cannot write: Is a directory")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"--out {path}: cannot write: Permission denied")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by the suffix of the path."""
    check(path)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # `fonts` says it
            if path.suffix == ".png":
                _save_png(figure, path)
            else:
                _save_svg(figure, path)
    except OSError as error:
        raise InputError(f"--out {path}: cannot write: {error.strerror}") from None


def _save_png(figure: Figure, path: Path) -> None:
    if missing := sorted(fonts.complete(figure)):
        characters = " ".join(missing)
        print(f"{path}: no installed font has {characters}; boxes stand for them", file=sys.stderr)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=min(150, MAX_PIXELS / max(figure.get_size_inches())))
    # A palette of 256 colours suffices and cuts the file to a third.
    image = Image.open(buffer).convert("RGB").quantize(dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def _save_svg(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    # Text kept as text makes the file small and searchable; no date makes it reproducible.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "seq2see"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.write_text(_number_clip_paths(buffer.getvalue().decode()), encoding="utf-8")


def _number_clip_paths(svg: str) -> str:
    """Number the clip paths: Matplotlib hashes their corners, whose last bits vary between runs."""
    numbers: dict[str, int] = {}
    return re.sub(
        r'((?:id="|url\(#))p([0-9a-f]{10})\b',
        lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers))}",
        svg,
    )
