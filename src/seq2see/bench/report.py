"""The frontier of translating, to read and to look at."""

import functools
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from seq2see.bench.translate import Frontier, Recommended, Row
from seq2see.see.tables import table

HEADS = ["engine", "precision", "beam", "batch", "workers × threads"]
HEADS += ["sentences/s", "p50 ms", "p99 ms", "RAM MB", "start s", "BLEU"]
COLOURS = {
    "torch float32": "#d55e00",
    "ct2 float32": "#56b4e9",
    "ct2 int8": "#0072b2",
}  # told apart by everyone
MARKS = "osD^vP*X"


def lines(found: Frontier) -> list[str]:
    """The table, what is missing in it, and what is recommended last."""
    rows = [*table([HEADS, *map(_cells, found.rows)]), ""]
    rows.append(f"{found.sentences} sentences of {found.text} · {_rounds(found)}")
    rows += [found.signature] if found.signature else []
    rows += [f"without ct2: {found.left_out}"] if found.left_out else []
    rows += [f"failed: {each}: {each.error}" for each in found.failed]
    best = found.recommended
    if best.throughput is None or best.latency is None:
        return [*rows, "nothing to recommend: every setting failed"]
    return [
        *rows,
        "",
        f"recommended: {best.rule}",
        f"for throughput: {best.throughput} ({best.throughput.sentences_per_second:,.0f} sentences/s)",
        f"for latency: {best.latency} (p50 {best.latency.p50_ms:.1f} ms)",
    ]


def _rounds(found: Frontier) -> str:
    return "measured once" if found.rounds < 2 else f"medians of {found.rounds} rounds"


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


def draw(found: Frontier) -> Figure:
    """Throughput against the latency of one sentence; each point is a setting, the recommended ones are ringed."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    figure.suptitle(f"Up and to the left is better; ringed: {found.recommended.rule}", fontsize=9)
    axes = figure.subplots()
    paper = {
        "facecolor": "white",
        "edgecolor": "none",
        "alpha": 0.7,
        "pad": 0.5,
    }  # small letters stand out from lines
    note = functools.partial(axes.annotate, textcoords="offset points", fontsize=7, bbox=paper)
    beams, chosen = sorted({row.beam for row in found.rows}), _chosen(found.recommended)
    for row in found.rows:
        name, mark = f"{row.engine} {row.precision}", MARKS[beams.index(row.beam) % len(MARKS)]
        x, y = row.p50_ms, row.sentences_per_second
        axes.plot([x, row.p99_ms], [y, y], color=COLOURS[name], linewidth=1, alpha=0.35, zorder=1)
        label = f"{name} · beam {row.beam}" + (
            "" if row.bleu is None else f" · BLEU {row.bleu:.1f}"
        )
        axes.plot(
            x,
            y,
            mark,
            color=COLOURS[name],
            markersize=7,
            markeredgecolor="white",
            zorder=4,
            label=label,
        )
        if row in chosen:
            axes.plot(
                x,
                y,
                "o",
                markersize=15,
                color="black",
                fillstyle="none",
                markeredgewidth=0.8,
                zorder=5,
            )
            note(
                f"{chosen[row]}: {_shares(row, found.rows)}",
                (x, y),
                (-11, 0),
                ha="right",
                va="center",
                weight="bold",
            )
        else:
            note(
                _shares(row, found.rows), (x, y), (-9, 0), ha="right", va="center", color="#555555"
            )
    _scale(axes)
    _legend(axes, "small figures: workers × threads" + ", batch" * _batched(found.rows))
    return figure


def _scale(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(
        "ms for one sentence: the median, and a line to the 99th percentile", fontsize=9
    )
    axes.set_ylabel("sentences a second, the whole text at once", fontsize=9)
    axes.margins(0.1, 0.08)
    left, right = axes.get_xlim()
    axes.set_xlim(left * (left / right) ** 0.2)  # what a point is called stands to its left
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=8)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(axes: Axes, title: str) -> None:
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))  # settings with one label have one mark
    legend = axes.legend(
        named.values(), named.keys(), loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False
    )
    legend.set_title(title)
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_fontsize(8)


def _shares(row: Row, rows: Sequence[Row]) -> str:
    return f"{row.workers} × {row.threads}" + f", {row.batch}" * _batched(rows)


def _batched(rows: Sequence[Row]) -> bool:
    return len({row.batch for row in rows}) > 1


def _chosen(recommended: Recommended) -> dict[Row, str]:
    """What each recommended row is for; one may be for both."""
    found: dict[Row, str] = {}
    for row, purpose in ((recommended.throughput, "throughput"), (recommended.latency, "latency")):
        if row is not None:
            found[row] = f"{found[row]}\nand {purpose}" if row in found else purpose
    return found
