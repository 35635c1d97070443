"""What layers cost, to read and to look at."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from seq2see.bench.attention import Growth, Row
from seq2see.see import figures
from seq2see.see.tables import table

NAMES = {
    "recurrent": "recurrent (LSTM)",
    "convolutional": "convolutional",
    "self_attention": "self-attention, weights kept",
    "self_attention_fused": "self-attention, fused",
    "window": "window attention",
}
LOOKS = {
    "recurrent": (figures.GREEN, "s-"),
    "convolutional": ("#e69f00", "D--"),
    "self_attention": (figures.RED, "o-"),
    "self_attention_fused": ("#cc79a7", "o--"),
    "window": (figures.BLUE, "^-"),
}
HEADS = [
    "layer",
    "n",
    "forward ms",
    "training ms",
    "forward MB",
    "training MB",
    "sequential",
    "path",
]
GROWTH = [
    "growth",
    "operations",
    "time",
    "theory",
    "memory",
    "theory",
    "forward time",
    "forward memory",
]


def lines(found: Growth) -> list[str]:
    """Every measurement, and below it how each layer grows."""
    growth = [
        [
            NAMES[kind],
            found.theory[kind].operations,
            f"n^{each.time:.2f}",
            f"n^{found.theory[kind].time}",
            f"n^{each.memory:.2f}",
            f"n^{found.theory[kind].memory}",
            f"n^{each.forward_time:.2f}",
            f"n^{each.forward_memory:.2f}",
        ]
        for kind, each in found.exponents.items()
    ]
    paths = [[NAMES[kind], each.sequential, each.path] for kind, each in found.theory.items()]
    return [
        *table([HEADS, *map(_cells, found.rows)]),
        "",
        *table([GROWTH, *growth]),
        "",
        *table([["in theory", "sequential operations", "longest path"], *paths]),
        "",
        f"{setting(found)} · growth over n = {', '.join(map(str, found.fitted_over))}",
    ]


def setting(found: Growth) -> str:
    """What the figures are of."""
    chosen, threads = found.settings, found.machine["threads"]
    return (
        f"d = {chosen['width']}, batch {chosen['batch']}, kernel {chosen['kernel']}, reach {chosen['reach']} · "
        f"medians of {found.rounds} round{'s' * (found.rounds > 1)} · {threads} thread{'s' * (threads > 1)}"
    )


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


def draw(found: Growth) -> Figure:
    """Time and memory of forward and backward, and the longest path, over the length."""
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    figure.suptitle(f"What a layer costs · {setting(found)}", fontsize=9)
    time, memory, path = figure.subplots(1, 3)
    for kind in found.exponents:
        rows = [row for row in found.rows if row.kind == kind]
        fit, theory = found.exponents[kind], found.theory[kind]
        _line(
            time, kind, rows, [row.training_ms for row in rows], f": {fit.time:.2f} ({theory.time})"
        )
        _line(
            memory,
            kind,
            rows,
            [row.training_mb for row in rows],
            f": {fit.memory:.2f} ({theory.memory})",
        )
        if kind != "self_attention_fused":  # its path is that of the other
            _line(path, kind, rows, [row.path for row in rows], "")
    figures.label(time, "Time, forward and backward", "n, the length", "ms")
    figures.label(memory, "Peak memory, forward and backward", "n", "MB")
    figures.label(path, "From the first position to the last", "n", "steps or layers")
    for axes in (time, memory, path):
        _scale(axes, sorted({row.length for row in found.rows}))
    for axes in (time, memory):
        axes.axvspan(
            found.fitted_over[0], found.fitted_over[-1], color="#f2f2f2", zorder=0, linewidth=0
        )
        axes.get_legend().set_title("exponent over the grey lengths (in theory)", prop={"size": 7})
    return figure


def _line(
    axes: Axes, kind: str, rows: list[Row], values: list[float] | list[int], growth: str
) -> None:
    colour, mark = LOOKS[kind]
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
