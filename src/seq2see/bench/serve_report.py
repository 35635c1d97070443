"""Report and figure of `bench serve`."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from seq2see.bench.serve import Serving
from seq2see.bench.serve_rounds import Row
from seq2see.see import figures
from seq2see.see.tables import table

HEADS = ["load", "requests/s", "sentences/s", "of offline", "p50 ms", "p95 ms", "p99 ms"]
HEADS += ["errors", "refused", "wrong", "generator", "RAM MB"]
COLOURS = (figures.BLUE, figures.RED, figures.GREEN, figures.GREY)
MARKS = "osD^"
OFFLINE: dict[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": "--"}


def report(serving: Serving) -> list[str]:
    """Return the table as lines, then the offline rate, the gain by batching, and the errors."""
    lines = [*table([HEADS, *map(_cells, serving.rows)]), ""]
    if serving.offline_sentences_per_second is not None:
        lines.append(f"offline: {serving.offline_sentences_per_second:,.1f} sentences/s")
    lines += [
        f"{row}: {row.of_batching_off:.2f} × the rate without batching"
        for row in serving.rows
        if row.of_batching_off is not None
    ]
    measured = "measured once" if serving.rounds < 2 else f"medians of {serving.rounds} rounds"
    several = serving.sentences_per_request
    each = "one per request" if several == 1 else f"{several} per request"
    lines.append(
        f"{serving.sentences} sentences of {serving.text}, {each} · "
        f"{measured} of {serving.window_seconds:g} s"
    )
    return lines + [f"errors: {count} × {reason}" for reason, count in serving.failures.items()]


def _cells(row: Row) -> list[str]:
    return [
        str(row),
        f"{row.requests_per_second:,.1f}",
        f"{row.sentences_per_second:,.1f}",
        "" if row.of_offline is None else f"{row.of_offline:.0%}",
        *(
            "" if value is None else f"{value:.1f}"
            for value in (row.p50_ms, row.p95_ms, row.p99_ms)
        ),
        str(row.errors),
        str(row.refused),
        "?" if row.wrong is None else str(row.wrong),
        f"{row.generator_share:.1%}",
        "" if row.memory_mb is None else f"{row.memory_mb:,.0f}",
    ]


def draw(serving: Serving) -> Figure:
    """Plot throughput and latency of the closed loops against the number of connections."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    throughput, latency = figure.subplots(1, 2)
    closed = [row for row in serving.rows if row.connections is not None]
    for place, server in enumerate(dict.fromkeys(row.server for row in closed)):
        rows = [row for row in closed if row.server == server]
        style: dict[str, Any] = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKS[place % len(MARKS)],
            "markersize": 4,
        }
        points = [(row.connections or 0, row.sentences_per_second) for row in rows]
        throughput.plot(*zip(*sorted(points), strict=True), label=server, **style)
        _latencies(latency, rows, style)
    if serving.offline_sentences_per_second is not None:
        throughput.axhline(serving.offline_sentences_per_second, label="offline", **OFFLINE)
    throughput.set_ylim(bottom=0)
    figures.label(throughput, "throughput", "connections", "sentences per second")
    latency.set_yscale("log")
    latency.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    title = "latency of a request: median, and a line to the 99th percentile"
    figures.label(latency, title, "connections", "ms")
    for axes in (throughput, latency):
        _count_connections(axes, closed)
    return figure


def _latencies(axes: Axes, rows: Sequence[Row], style: dict[str, Any]) -> None:
    points = [
        (row.connections, row.p50_ms, row.p99_ms)
        for row in rows
        if row.connections is not None and row.p50_ms is not None and row.p99_ms is not None
    ]
    points.sort()
    axes.plot([count for count, *_ in points], [p50 for _, p50, _ in points], **style)
    for count, p50, p99 in points:
        axes.plot([count, count], [p50, p99], color=style["color"], alpha=0.4)


def _count_connections(axes: Axes, rows: Sequence[Row]) -> None:
    counts = sorted({row.connections for row in rows if row.connections is not None})
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
