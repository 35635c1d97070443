"""Style of all figures, and their files: PNG, SVG or a page of HTML."""

import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.see import fonts
from seq2see.see.dark import darken
from seq2see.see.figure_page import page
from seq2see.see.numbers import Numbers, numbers_of
from seq2see.text.byte_pieces import labels

BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"  # safe for colour blindness
PINK, ORANGE, SKY = "#cc79a7", "#e69f00", "#56b4e9"
CURVES = [(BLUE, "o"), (RED, "s"), (GREEN, "^"), (PINK, "D"), (ORANGE, "v"), (SKY, "P")]
ENDINGS = (".png", ".svg", ".html")
MAX_PIXELS = 10_000  # per side: a very long sentence lowers the resolution instead
ATTENTION = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "cross-attention",
}


def layer_and_head(layer: int, head: int) -> str:
    """Name a head for people, who count from 1: (1, 2) → "layer 2, head 3"."""
    return f"layer {layer + 1}, head {head + 1}"


def head_title(name: str, head: int) -> str:
    """Spell out a trace name: ("decoder.1.cross", 2) → "cross-attention, layer 2, head 3"."""
    stack, layer, kind = name.split(".")
    return f"{ATTENTION[f'{stack}.{kind}']}, {layer_and_head(int(layer), head)}"


def shown(tokens: Sequence[str]) -> list[str]:
    """Write the space before a word as ·, since the mark of subwords, ▁, looks like a tick.

    The bytes of a character are labelled by it.
    """
    return [token.replace("▁", "·") for token in labels(tokens)]


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


def check(path: Path, dark: bool = False) -> None:
    """Refuse a path to which no figure can be written, before the work is done."""
    if path.suffix not in ENDINGS:
        raise InputError(f"--out {path}: must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if dark and path.suffix == ".html":
        raise InputError(f"--dark: {path} is light or dark as its reader's system is; leave it out")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--out {path}: cannot write: Is a directory")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"--out {path}: cannot write: Permission denied")


def save(
    figure: Figure, path: Path, dark: bool = False, numbers: Sequence[Numbers] | None = None
) -> None:
    """Write a figure as PNG, SVG or HTML, by the suffix of the path.

    HTML has the numbers as tables, too; by default those of the curves and maps of the figure.
    """
    _write([figure], [path], dark, numbers)


def save_pages(pages: Sequence[Figure], path: Path, dark: bool = False) -> list[Path]:
    """Write several figures: to numbered files, a-1.png, a-2.png …, or to one page of HTML."""
    paths = [path]
    if len(pages) > 1 and path.suffix != ".html":
        paths = [path.with_stem(f"{path.stem}-{i + 1}") for i in range(len(pages))]
    _write(pages, paths, dark, None)
    return paths


def _write(
    figures: Sequence[Figure], paths: Sequence[Path], dark: bool, numbers: Sequence[Numbers] | None
) -> None:
    for path in paths:
        check(path, dark)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # `fonts` says it
            if paths[0].suffix == ".html":
                write_text(paths[0], _html(figures, paths[0].stem, numbers))
                return
            for figure, path in zip(figures, paths, strict=True):
                if dark:
                    darken(figure)
                if path.suffix == ".png":
                    _save_png(figure, path)
                else:
                    write_text(path, _svg(figure))
    except OSError as error:
        raise InputError(f"--out {paths[0]}: cannot write: {error.strerror}") from None


def _save_png(figure: Figure, path: Path) -> None:
    if missing := fonts.complete(figure):
        print(f"{path}: {fonts.warning(missing)}", file=sys.stderr)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=min(150, MAX_PIXELS / max(figure.get_size_inches())))
    # A palette of 256 colours suffices and cuts the file to a third.
    image = Image.open(buffer).convert("RGB").quantize(dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def _html(figures: Sequence[Figure], name: str, numbers: Sequence[Numbers] | None) -> str:
    """Render figures as a page, and leave them dark; without a title it has the file's name."""
    titles = [figure.get_suptitle() for figure in figures]
    title = next(filter(None, titles), name).replace("\n", " · ")
    if numbers is None:
        numbers = [table for figure in figures for table in numbers_of(figure)]
    drawings = []
    for i, figure in enumerate(figures):
        light = _part_of_page(_svg(figure), f"light{i}-")
        darken(figure)
        drawings.append((light, _part_of_page(_svg(figure), f"dark{i}-")))
    return page(title, drawings, numbers)


def _part_of_page(svg: str, prefix: str) -> str:
    """Drop the head of an SVG file, and make its ids different from those of other drawings."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg[svg.index("<svg") :])


def _svg(figure: Figure) -> str:
    buffer = io.BytesIO()
    # Text kept as text makes the file small and searchable; no date makes it reproducible.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "seq2see"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _number_clip_paths(buffer.getvalue().decode())


def _number_clip_paths(svg: str) -> str:
    """Number the clip paths: Matplotlib hashes their corners, whose last bits vary between runs."""
    numbers: dict[str, int] = {}
    return re.sub(
        r'((?:id="|url\(#))p([0-9a-f]{10})\b',
        lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers))}",
        svg,
    )
