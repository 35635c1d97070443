"""Tables of the numbers that a figure draws, read from the figure itself."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from seq2see.batches import spread

COLOUR_BAR = "<colorbar>"  # Matplotlib's label for the axes of one
MOST_ROWS = 200  # of a curve; longer ones are thinned out


@dataclass(frozen=True)
class Numbers:
    """A table with a caption; the first cell of each row names the row."""

    caption: str
    head: list[str]
    rows: list[list[str]]


def numbers_of(figure: Figure) -> list[Numbers]:
    """List a table for each map, each set of curves and each set of bars of a figure."""
    return [
        table
        for axes in figure.axes
        if axes.get_label() != COLOUR_BAR
        for table in (*_maps(axes), *_curves(axes), *_bars(axes))
    ]


def _maps(axes: Axes) -> Iterator[Numbers]:
    """Tabulate each drawn array (rows, columns) under the labels of its ticks."""
    for image in axes.images:
        values = np.asarray(image.get_array())
        if values.ndim != 2:  # a picture
            continue
        height, width = values.shape
        rows = _names(axes.yaxis, height)
        columns = _names(axes.xaxis, width)
        corner = f"{axes.get_ylabel()} ↓  {axes.get_xlabel()} →"
        body = [[name, *map(_cell, row)] for name, row in zip(rows, values.tolist(), strict=True)]
        yield Numbers(axes.get_title(), [corner, *columns], body)


def _names(axis: Axis, count: int) -> list[str]:
    """Use the labels of ticks, hidden or not, where each row has one; otherwise count from 1."""
    ticks = axis.get_ticklocs()
    if [*ticks] != [*range(count)]:
        return [str(i + 1) for i in range(count)]
    return axis.get_major_formatter().format_ticks(ticks.tolist())


def _curves(axes: Axes) -> Iterator[Numbers]:
    """Tabulate the curves in the legend, a column each, by all of their x."""
    curves: dict[str, dict[Any, Any]] = {}
    for line in axes.lines:
        name = str(line.get_label())
        if not name.startswith("_"):  # Matplotlib's own name for one that is not in the legend
            x, y = (np.asarray(values).tolist() for values in line.get_data(orig=True))
            curves[name] = dict(zip(x, y, strict=True))
    if not curves:
        return
    every_x = list(dict.fromkeys(x for curve in curves.values() for x in curve))
    if not isinstance(every_x[0], str):
        every_x.sort()
    shown = [every_x[place] for place in spread(len(every_x), MOST_ROWS)]
    rows = [
        [_cell(x), *(_cell(curve[x]) if x in curve else "" for curve in curves.values())]
        for x in shown
    ]
    yield Numbers(f"{axes.get_title()} ({axes.get_ylabel()})", [axes.get_xlabel(), *curves], rows)


def _bars(axes: Axes) -> Iterator[Numbers]:
    """Tabulate bars, which are horizontal or vertical, by the labels of their ticks."""
    bars = [part for part in axes.containers if isinstance(part, BarContainer)]
    if not bars:
        return
    lying = bars[0].orientation == "horizontal"
    names = _names(axes.yaxis if lying else axes.xaxis, len(bars[0]))
    columns = [
        [_cell(patch.get_width() if lying else patch.get_height()) for patch in bar] for bar in bars
    ]
    head = [axes.get_ylabel() if lying else axes.get_xlabel()]
    head += [str(bar.get_label()).lstrip("_") for bar in bars]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    yield Numbers(axes.get_title(), head, rows)


def _cell(value: Any) -> str:
    """Write a number with four digits, a category as it is, and a missing value as nothing."""
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.4g}"
