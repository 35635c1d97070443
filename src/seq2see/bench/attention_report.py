"""Report and figure of `bench attention`."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from seq2see.bench.attention import Exponents, Growth, Row, Theory
from seq2see.see import figures
from seq2see.see.tables import table

NAMES = {
    "recurrent": "recurrent (LSTM)",
    "convolutional": "convolutional",
    "self_attention": "self-attention, weights kept",
    "self_attention_fused": "self-attention, fused",
    "window": "window attention",
}
STYLES = {
    "recurrent": (figures.GREEN, "s-"),
    "convolutional": ("#e69f00", "D--"),
    "self_attention": (figures.RED, "o-"),
    "self_attention_fused": ("#cc79a7", "o--"),
    "window": (figures.BLUE, "^-"),
}
MEASURED = ["layer", "n", "forward ms", "training ms", "forward MB", "training MB"]
MEASURED += ["sequential", "path"]
GROWTH = ["growth", "operations", "time", "theory", "memory", "theory"]
GROWTH += ["forward time", "forward memory"]


def report(growth: Growth) -> list[str]:
    """Return every measurement, the growth of each layer, and table 1, as lines."""
    fits = [_fit(kind, growth.theory[kind], fit) for kind, fit in growth.exponents.items()]
    paths = [
        [NAMES[kind], theory.sequential, theory.path] for kind, theory in growth.theory.items()
    ]
    fitted_over = ", ".join(map(str, growth.fitted_over))
    return [
        *table([MEASURED, *map(_cells, growth.rows)]),
        "",
        *table([GROWTH, *fits]),
        "",
        *table([["in theory", "sequential operations", "longest path"], *paths]),
        "",
        f"{_settings(growth)} · growth over n = {fitted_over}",
    ]


def _settings(growth: Growth) -> str:
    chosen = growth.settings
    threads = growth.machine["threads"]
    return (
        f"d = {chosen['width']}, batch {chosen['batch']}, kernel {chosen['kernel']}, "
        f"reach {chosen['reach']} · medians of {growth.rounds} round{'s' * (growth.rounds > 1)} · "
        f"{threads} thread{'s' * (threads > 1)}"
    )


def _fit(kind: str, theory: Theory, fit: Exponents) -> list[str]:
    return [
        NAMES[kind],
        theory.operations,
        f"n^{fit.time:.2f}",
        f"n^{theory.time}",
        f"n^{fit.memory:.2f}",
        f"n^{theory.memory}",
        f"n^{fit.forward_time:.2f}",
        f"n^{fit.forward_memory:.2f}",
    ]


def _cells(row: Row) -> list[str]:
    return [
        NAMES[row.kind],
        str(row.length),
        f"{row.forward_ms:,.2f}",
        f"{row.training_ms:,.2f}",
        f"{row.forward_mb:,.2f}",
        f"{row.training_mb:,.2f}",
        str(row.sequential),
        str(row.path),
    ]


def draw(growth: Growth) -> Figure:
    """Plot time and memory of forward and backward, and the longest path, over the length."""
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    figure.suptitle(f"Cost of a layer · {_settings(growth)}", fontsize=9)
    time, memory, path = figure.subplots(1, 3)
    for kind, fit in growth.exponents.items():
        rows = [row for row in growth.rows if row.kind == kind]
        theory = growth.theory[kind]
        time_growth = f": {fit.time:.2f} ({theory.time})"
        memory_growth = f": {fit.memory:.2f} ({theory.memory})"
        _line(time, kind, rows, [row.training_ms for row in rows], time_growth)
        _line(memory, kind, rows, [row.training_mb for row in rows], memory_growth)
        if kind != "self_attention_fused":  # the same path as with weights
            _line(path, kind, rows, [row.path for row in rows])
    figures.label(time, "Time, forward and backward", "n, the length", "ms")
    figures.label(memory, "Peak memory, forward and backward", "n", "MB")
    figures.label(path, "From the first position to the last", "n", "steps or layers")
    for axes in (time, memory, path):
        _scale(axes, sorted({row.length for row in growth.rows}))
    shortest = growth.fitted_over[0]
    longest = growth.fitted_over[-1]
    for axes in (time, memory):
        axes.axvspan(shortest, longest, color="#f2f2f2", zorder=0, linewidth=0)
        axes.get_legend().set_title("exponent over the grey lengths (in theory)", prop={"size": 7})
    return figure


def _line(
    axes: Axes, kind: str, rows: Sequence[Row], values: Sequence[float], growth: str = ""
) -> None:
    colour, mark = STYLES[kind]
    lengths = [row.length for row in rows]
    name = NAMES[kind] if growth else NAMES[kind].partition(",")[0]
    axes.plot(lengths, values, mark, color=colour, label=name + growth, markersize=4, linewidth=1.2)


def _scale(axes: Axes, lengths: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, list(map(str, lengths)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.legend(frameon=False, fontsize=7, loc="upper left")
