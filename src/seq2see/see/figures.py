"""Figures: rows = who looks, columns = what is looked at."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from seq2see.errors import InputError
from seq2see.tasks.translator import Explanation

COLOURS = "Blues"
BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"  # told apart by everyone
MOST_PIXELS = 10_000  # on a side: a long sentence gets a coarser picture, not an endless one
TITLES = {
    "encoder.self": "Encoder: source tokens look at source tokens",
    "decoder.self": "Decoder: what is written so far looks at itself and what came before",
    "decoder.cross": "Cross: each token, as it is written, looks at the source",
}


def attention(explanation: Explanation) -> Figure:
    """Every head of every layer: encoder, decoder and cross attention, one block each, as far as the model has them."""
    names = {
        "encoder.self": (explanation.source_tokens,) * 2,
        "decoder.self": (explanation.target_in,) * 2,
    }
    names["decoder.cross"] = (explanation.target_out, explanation.source_tokens)
    grids = {kind: layers for kind in names if (layers := _layers(explanation, kind))}
    if not grids:
        raise InputError("this model has no attention to draw")
    names = {kind: names[kind] for kind in grids}
    cells = {kind: [max(len(tokens), 7) * 0.13 for tokens in names[kind]] for kind in names}
    heads = max(len(layer) for grid in grids.values() for layer in grid)
    widths = [1.0 + heads * (cells[kind][1] + 0.12) for kind in names]
    heights = [1.3 + len(grids[kind]) * (cells[kind][0] + 0.3) for kind in names]
    figure = Figure(figsize=(max(widths), sum(heights) + 0.5), layout="constrained")
    figure.suptitle(f"{explanation.source}\n{explanation.target}", fontsize=10, parse_math=False)
    blocks: Any = figure.subfigures(len(names), 1, squeeze=False, height_ratios=heights)
    for block, (kind, (rows, columns)) in zip(blocks[:, 0], names.items(), strict=True):
        block.suptitle(TITLES[kind], fontsize=9, fontweight="bold")
        axes = block.subplots(len(grids[kind]), len(grids[kind][0]), squeeze=False)
        for i, layer in enumerate(grids[kind]):
            for j, weights in enumerate(layer):
                panel(axes[i][j], weights, rows if j == 0 else None, columns if i == 0 else None)
                axes[i][j].set_xlabel(f"layer {i + 1} · head {j + 1}", fontsize=6, labelpad=2)
    return figure


def alignment(
    weights: Tensor,
    gold: set[tuple[int, int]],
    source: Sequence[str],
    target: Sequence[str],
    title: str,
) -> Figure:
    """One head between words (target words, source words) beside the gold alignment."""
    size = (2.4 + 0.42 * len(source), 2.0 + 0.22 * len(target))
    figure = Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2)
    panel(left, weights, target, source)
    left.set_xlabel(title, fontsize=8)
    truth = weights.new_zeros(len(target), len(source))
    for i, j in gold:
        truth[j, i] = 1.0
    panel(right, truth, target, source)
    right.set_xlabel("gold alignment", fontsize=8)
    return figure


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Name a chart and its axes, with a legend if its lines have names."""
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
    """Refuse a path that cannot become a picture, before the work is done."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"--out {path}: must end in .png or .svg")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")


def save(figure: Figure, path: Path) -> None:
    """Write a PNG or SVG, by the ending of the path."""
    check(path)
    try:
        dpi = min(150, MOST_PIXELS / max(figure.get_size_inches()))
        drawn = io.BytesIO()
        if path.suffix == ".png":
            figure.savefig(drawn, dpi=dpi)
            # 256 colours are enough, and make a third of the bytes.
            Image.open(drawn).convert("RGB").quantize(dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            return
        # Letters as letters keep an SVG small and searchable; no date keeps it the same from run to run.
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "seq2see"}):
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        path.write_text(_count_clips(drawn.getvalue().decode()), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {path}: cannot write: {error.strerror}") from None


def _count_clips(svg: str) -> str:
    """Clips are named after their corners, whose last bits differ from run to run; so count them instead."""
    numbers: dict[str, int] = {}
    return re.sub(
        r'((?:id="|url\(#))p([0-9a-f]{10})\b',
        lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers))}",
        svg,
    )


def _layers(explanation: Explanation, kind: str) -> list[Tensor]:
    """The weights (H, rows, columns) of each layer of `encoder.self`, `decoder.self` or `decoder.cross`."""
    stack, position = kind.split(".")
    found: list[Tensor] = []
    while f"{stack}.{len(found)}.{position}" in explanation.weights:
        found.append(explanation.weights[f"{stack}.{len(found)}.{position}"])
    return found


def panel(
    axes: Axes, weights: Tensor, rows: Sequence[str] | None, columns: Sequence[str] | None
) -> None:
    """One map of weights (rows, columns), with names at its sides where they are given."""
    axes.imshow(
        weights.numpy(), cmap=COLOURS, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    axes.tick_params(
        length=0, labelsize=6, top=False, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xticks(range(len(columns or [])), columns or [], rotation=90, parse_math=False)
    axes.set_yticks(range(len(rows or [])), rows or [], parse_math=False)
    for side in axes.spines.values():
        side.set_linewidth(0.4)
