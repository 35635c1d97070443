"""Attention as HTML: a fragment for notebooks and a page, which load nothing and need no script."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import isqrt

from rich.cells import cell_len
from torch import Tensor

from seq2see.see.figures import ATTENTION, head_title, layer_and_head, shown
from seq2see.tasks.translator import Explanation, kind_of

MOST_CELLS = 60_000  # of all maps together, which keeps the HTML at a megabyte or so
LEVELS = 20  # of opacity
CELL = 11  # pixels
NAME = 10.0  # cells that the name of an axis takes
LONGEST_LABEL = 16  # characters
CHARACTER = 0.5  # cells that a character of a label takes

STYLE = """
.seq2see {
  --text: #1d2129; --dim: #5b6472; --page: #fff; --line: #d9dde3; --ink: #08519c;
  color-scheme: light dark; padding: .6rem; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif
}
@media (prefers-color-scheme: dark) {
  .seq2see {
    --text: #e4e7ec; --dim: #9aa4b2; --page: #14171c; --line: #353b45; --ink: #9ecbff
  }
}
@media (forced-colors: active) {
  .seq2see {
    --text: CanvasText; --dim: CanvasText; --page: Canvas; --line: CanvasText; --ink: CanvasText
  }
}
.seq2see p { margin: .2rem 0 } .seq2see .dim { color: var(--dim) }
.seq2see .kind > summary { margin: .8rem 0 .3rem; font-weight: 600 }
.seq2see summary { cursor: pointer }
.seq2see .layer { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem }
.seq2see figure { margin: 0 0 .8rem; max-width: 100% }
.seq2see figcaption { font-weight: 600 }
.seq2see svg { display: block; max-width: 100%; height: auto }
.seq2see path { stroke: var(--ink); shape-rendering: crispEdges }
.seq2see rect { fill: none; stroke: var(--line); stroke-width: .1 }
.seq2see text { fill: var(--text); font: .85px system-ui, sans-serif }
.seq2see .rows, .seq2see .axis { text-anchor: end }
.seq2see text.axis, .seq2see text.name { fill: var(--dim); font-style: italic }
.seq2see .wide { overflow-x: auto }
.seq2see table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.seq2see caption { text-align: left }
.seq2see th, .seq2see td {
  unicode-bidi: plaintext; /* each cell in the direction of its text */
  padding: .05rem .4rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; background: none; color: inherit
}
"""
PAGE_STYLE = """
:root { color-scheme: light dark } body { margin: 0; background: #fff }
@media (prefers-color-scheme: dark) { body { background: #14171c } }
"""
CAVEAT = "Weights show where a head read from, not why a word was chosen."


@dataclass(frozen=True)
class Grid:
    """The rows and columns that are drawn of a layer's maps, with the names of these axes."""

    rows: list[str]  # query tokens
    columns: list[str]  # key tokens
    query: str
    key: str


def page(explanation: Explanation) -> str:
    """Render an explanation as a page of its own."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Attention: {escape(explanation.source)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
{fragment(explanation)}
</body>
</html>
"""


def fragment(explanation: Explanation) -> str:
    """Render every head of every layer, a block for each kind of attention."""
    side = _side(explanation)
    blocks = "".join(
        _block(explanation, title, names, side)
        for kind, title in ATTENTION.items()
        if (names := [name for name in explanation.weights if kind_of(name) == kind])
    )
    notes = [_missing(explanation), _left_out(explanation, side)]
    if blocks:
        notes.append(CAVEAT)
    paragraphs = "".join(f'<p class="dim">{note}</p>\n' for note in notes if note)
    return (
        f'<div class="seq2see"><style>{STYLE}</style>\n'
        f'<p dir="auto">{escape(explanation.source)}</p>\n'
        f'<p dir="auto">{escape(explanation.target)}</p>\n{paragraphs}{blocks}</div>'
    )


def _side(explanation: Explanation) -> int:
    """The number of rows and columns that are drawn of each map."""
    maps = sum(map(len, explanation.weights.values()))
    return isqrt(MOST_CELLS // max(1, maps))


def _missing(explanation: Explanation) -> str:
    if not explanation.weights:
        return "This model has no attention to draw."
    kinds = set(map(kind_of, explanation.weights))
    missing = [title for kind, title in ATTENTION.items() if kind not in kinds]
    return f"This model has no {' and no '.join(missing)}." if missing else ""


def _left_out(explanation: Explanation, side: int) -> str:
    lengths = {"source": len(explanation.source_tokens), "target": len(explanation.target_out)}
    cut = [f"{length} {name} tokens" for name, length in lengths.items() if length > side]
    if not explanation.weights or not cut:
        return ""
    whole = "plot(layer, head) draws one head whole, and save(“x.json”) has all weights"
    return f"Drawn are the first {side} of {' and of '.join(cut)}; {whole}."


def _block(explanation: Explanation, title: str, names: Sequence[str], side: int) -> str:
    """Draw the layers of one kind of attention, a row of maps for each."""
    _, query, key = explanation.axes[names[0]]
    rows, columns = (shown(tokens[:side]) for tokens in explanation.tokens(names[0]))
    grid = Grid(rows, columns, query, key)
    layers = ""
    for name in names:
        maps = enumerate(explanation.weights[name][:, :side, :side])
        figures = "".join(_figure(weights, grid, name, head) for head, weights in maps)
        layers += f'<div class="layer">{figures}</div>\n'
    return (
        f'<details class="kind" open=""><summary>{title.capitalize()}</summary>\n'
        f'<p class="dim">Rows: {query}; columns: {key}. Full colour is a weight of 1.</p>\n'
        f"{layers}</details>\n"
    )


def _figure(weights: Tensor, grid: Grid, name: str, head: int) -> str:
    """Draw one map of weights (T, S) above its numbers."""
    _, layer, _ = name.split(".")
    title = head_title(name, head)
    return (
        f"<figure><figcaption>{layer_and_head(int(layer), head)}</figcaption>"
        f"{_map(weights, grid, title)}<details><summary>numbers</summary>"
        f"{_table(weights, grid, title)}</details></figure>\n"
    )


def _map(weights: Tensor, grid: Grid, title: str) -> str:
    rows, columns = _clipped(grid.rows), _clipped(grid.columns)
    left = CHARACTER * max(map(cell_len, rows)) + 2.0
    top = CHARACTER * max(map(cell_len, columns)) + 2.0
    width = left + max(len(columns), NAME)
    height = top + max(len(rows), NAME)
    row_labels, column_labels = _labels(rows), _labels(columns)
    says = f"{title}. Rows: {grid.query}; columns: {grid.key}."
    return (
        f'<svg viewBox="{-left:g} {-top:g} {width:g} {height:g}" width="{CELL * width:.0f}"'
        f' height="{CELL * height:.0f}" role="img" aria-label="{says}">'
        f"{_cells(weights)}"
        f'<rect width="{len(columns)}" height="{len(rows)}"/>'
        f'<g class="rows" transform="translate(-.4 .8)">{row_labels}</g>'
        f'<g transform="translate(.8 -.4)rotate(-90)">{column_labels}</g>'
        f'<text class="axis" transform="translate({1 - left:g} 0)rotate(-90)">{grid.query}</text>'
        f'<text class="name" y="{1 - top:g}">{grid.key}</text></svg>'
    )


def _labels(tokens: Sequence[str]) -> str:
    return "".join(
        f'<text y="{place}">{escape(token)}</text>' for place, token in enumerate(tokens)
    )


def _clipped(tokens: Sequence[str]) -> list[str]:
    """Shorten long labels, which the table has in full."""
    return [
        token if len(token) <= LONGEST_LABEL else f"{token[: LONGEST_LABEL - 1]}…"
        for token in tokens
    ]


def _cells(weights: Tensor) -> str:
    """Draw cells as one path for each level of opacity; neighbours of a level are one stroke."""
    strokes: dict[int, list[str]] = {}
    for t, row in enumerate((weights * LEVELS).round().int().tolist()):
        s = 0
        for level, group in groupby(row):
            length = len(list(group))
            strokes.setdefault(level, []).append(f"M{s} {t}h{length}")
            s += length
    strokes.pop(0, None)  # invisible
    paths = (
        f'<path opacity="{level / LEVELS:g}" d="{"".join(cells)}"/>'
        for level, cells in sorted(strokes.items())
    )
    return f'<g transform="translate(0 .5)">{"".join(paths)}</g>'


def _table(weights: Tensor, grid: Grid, title: str) -> str:
    """Tabulate a map: weights to two decimals, and 0 where there is none at all."""
    head = "".join(f"<th>{escape(token)}</th>" for token in grid.columns)
    body = "".join(
        f"<tr><th>{escape(token)}</th>{''.join(map(_cell, row))}</tr>\n"
        for token, row in zip(grid.rows, weights.tolist(), strict=True)
    )
    return (
        f'<div class="wide" role="region" aria-label="{title}" tabindex="0"><table>'
        f"<caption>{title}</caption><thead><tr><th>{grid.query} ↓ {grid.key} →</th>{head}</tr>"
        f"</thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cell(weight: float) -> str:
    return f"<td>{f'{weight:.2f}'.removeprefix('0')}</td>" if weight else "<td>0</td>"
