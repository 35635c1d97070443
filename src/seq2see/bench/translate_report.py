"""Report and figure of `bench translate`."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from seq2see.bench.translate import Frontier, Recommended, Row
from seq2see.see.labels import name_points
from seq2see.see.tables import table

HEADS = ["engine", "precision", "beam", "batch", "workers × threads"]
HEADS += ["sentences/s", "p50 ms", "p99 ms", "RAM MB", "start s", "BLEU"]
COLOURS = {  # distinguishable with any colour vision
    "torch float32": "#d55e00",
    "ct2 float32": "#56b4e9",
    "ct2 int8": "#0072b2",
}
MARKS = "osD^vP*X"
POINT: dict[str, Any] = {"markersize": 7, "markeredgecolor": "white", "zorder": 4}
CIRCLE: dict[str, Any] = {
    "color": "black",
    "fillstyle": "none",
    "markersize": 11,
    "markeredgewidth": 0.8,
    "zorder": 5,
}
LABEL = "#555555"


def report(frontier: Frontier) -> list[str]:
    """Return the table as lines, then missing and failed settings, and the recommendation last."""
    lines = [*table([HEADS, *map(_cells, frontier.rows)]), ""]
    measured = "measured once" if frontier.rounds < 2 else f"medians of {frontier.rounds} rounds"
    lines.append(f"{frontier.sentences} sentences of {frontier.text} · {measured}")
    if frontier.signature:
        lines.append(frontier.signature)
    if frontier.left_out:
        lines.append(f"without ct2: {frontier.left_out}")
    lines += [f"failed: {setting}: {setting.error}" for setting in frontier.failed]
    throughput = frontier.recommended.throughput
    latency = frontier.recommended.latency
    if throughput is None or latency is None:
        return [*lines, "nothing to recommend: every setting failed"]
    return [
        *lines,
        "",
        f"recommended: {frontier.recommended.rule}",
        f"for throughput: {throughput} ({throughput.sentences_per_second:,.0f} sentences/s)",
        f"for latency: {latency} (p50 {latency.p50_ms:.1f} ms)",
    ]


def _cells(row: Row) -> list[str]:
    return [
        row.engine,
        row.precision,
        str(row.beam),
        str(row.batch),
        f"{row.workers} × {row.threads}",
        f"{row.sentences_per_second:,.1f}",
        f"{row.p50_ms:.1f}",
        f"{row.p99_ms:.1f}",
        f"{row.peak_memory_mb:,.0f}",
        f"{row.start_seconds:.2f}",
        "" if row.bleu is None else f"{row.bleu:.2f}",
    ]


def draw(frontier: Frontier) -> Figure:
    """Plot throughput against latency, one point per setting; recommended ones are circled."""
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    rule = frontier.recommended.rule
    figure.suptitle(f"Up and to the left is better; circled: {rule}", fontsize=9)
    axes = figure.subplots()
    beams = sorted({row.beam for row in frontier.rows})
    purposes = _purposes(frontier.recommended)
    several = _several_batches(frontier.rows)
    names: list[str] = []
    for row in frontier.rows:
        _point(axes, row, MARKS[beams.index(row.beam) % len(MARKS)])
        names.append(f"{row.workers} × {row.threads}" + f", {row.batch}" * several)
        if row in purposes:
            _circle(axes, row)
            names[-1] += f": {purposes[row]}"
    _scale(axes)
    _legend(axes, "small figures: workers × threads" + ", batch" * several)
    points = [(row.p50_ms, row.sentences_per_second) for row in frontier.rows]
    colours = ["black" if row in purposes else LABEL for row in frontier.rows]
    name_points(axes, points, names, colours)
    return figure


def _point(axes: Axes, row: Row, mark: str) -> None:
    """Draw the setting at its median latency, with a line to the 99th percentile."""
    name = f"{row.engine} {row.precision}"
    colour = COLOURS[name]
    x = row.p50_ms
    y = row.sentences_per_second
    label = f"{name} · beam {row.beam}"
    if row.bleu is not None:
        label += f" · BLEU {row.bleu:.1f}"
    axes.plot([x, row.p99_ms], [y, y], color=colour, linewidth=1, alpha=0.35, zorder=1)
    axes.plot(x, y, mark, color=colour, label=label, **POINT)


def _circle(axes: Axes, row: Row) -> None:
    axes.plot(row.p50_ms, row.sentences_per_second, "o", **CIRCLE)


def _scale(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("ms per sentence: the median, and a line to the 99th percentile", fontsize=9)
    axes.set_ylabel("sentences per second, in batches", fontsize=9)
    axes.margins(0.1, 0.08)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=8)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(axes: Axes, title: str) -> None:
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))  # settings with the same label share a mark
    legend = axes.legend(
        unique.values(), unique.keys(), loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False
    )
    legend.set_title(title)
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_fontsize(8)


def _several_batches(rows: Sequence[Row]) -> bool:
    return len({row.batch for row in rows}) > 1


def _purposes(recommended: Recommended) -> dict[Row, str]:
    """Return the purpose of each recommended row; one row may serve both."""
    purposes: dict[Row, str] = {}
    for row, purpose in ((recommended.throughput, "throughput"), (recommended.latency, "latency")):
        if row is not None:
            purposes[row] = f"{purposes[row]} and {purpose}" if row in purposes else purpose
    return purposes
