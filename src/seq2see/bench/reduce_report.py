"""Report and figure of `bench reduce`."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seq2see.bench.reduce import TOLERANCE, TRAINED, UNTOUCHED, Frontier, Row
from seq2see.see.figures import BLUE, GREEN, GREY, RED, label
from seq2see.see.labels import name_points
from seq2see.see.tables import table

HEADS = ["", "a second", "faster", "encoder", "faster", "GFLOPs", "of all", "tokens left", "MB"]
NAMES = {"bleu": "BLEU", "accuracy": "% right"}
STYLES = {
    "as trained": ("#e69f00", "P-"),
    "merge": (BLUE, "o-"),
    "merge decreasing": ("#cc79a7", "v-"),
    "merge neighbours": ("#56b4e9", "s-"),
    "merge random": (GREY, "o:"),
    "threshold": (GREEN, "D-"),
    "keep": (RED, "^-"),
    "keep random": (GREY, "^:"),
    "keep as many": (RED, "P:"),
    "keep random as many": (GREY, "P:"),
}
STAR: dict[str, Any] = {"color": "black", "markersize": 10, "zorder": 5}


def report(frontier: Frontier) -> list[str]:
    """Return the table as lines, and the setting that pays last."""
    untouched = frontier.rows[0]
    name = NAMES[frontier.measure]
    lines = table([[*HEADS, name], *(_cells(row, untouched) for row in frontier.rows)])
    rounds = "measured once" if frontier.rounds < 2 else f"medians of {frontier.rounds} rounds"
    lines += [
        "",
        f"{frontier.count} of {frontier.text}, {untouched.tokens_left:.1f} tokens each · {rounds}",
    ]
    if frontier.trained:
        left = " · ".join(f"{tokens:.1f}" for tokens in frontier.rows[1].layer_tokens)
        lines.append(f"{TRAINED}: {frontier.trained}; tokens left after each layer: {left}")
    against = "these weights without their plan" if frontier.trained else "the untouched model"
    rule = f"at most {TOLERANCE[frontier.measure]} {name} below {against}"
    if frontier.pays is None:
        return [*lines, f"nothing pays here: no setting {rule} is clearly faster"]
    gain = frontier.pays.per_second / untouched.per_second
    return [*lines, f"pays: {frontier.pays}, {gain:.2f} times as fast and {rule}"]


def _cells(row: Row, untouched: Row) -> list[str]:
    return [
        str(row),
        f"{row.per_second:,.1f}",
        f"{row.per_second / untouched.per_second:.2f}×",
        f"{row.encoded_per_second:,.1f}",
        f"{row.encoded_per_second / untouched.encoded_per_second:.2f}×",
        f"{row.gflops:.3f}",
        f"{row.gflops_share:.0%}",
        f"{row.tokens_left:.1f}",
        f"{row.peak_memory_mb:.1f}",
        f"{row.quality:.2f}",
    ]


def draw(frontier: Frontier) -> Figure:
    """Plot quality against the speed of the model and of its encoder, and against operations."""
    figure = Figure(figsize=(15, 5), layout="constrained")
    figure.suptitle(
        "Up and to the right is better; dotted: random tokens, which show what the choice is worth",
        fontsize=10,
    )
    whole, encoder, work = figure.subplots(1, 3, sharey=True)
    first = frontier.rows[0]
    name = NAMES[frontier.measure]
    faster = "times as fast as the untouched model"
    _panel(whole, frontier, lambda row: row.per_second / first.per_second)
    label(whole, "from input to answer", faster, name)
    _panel(encoder, frontier, lambda row: row.encoded_per_second / first.encoded_per_second)
    label(encoder, "encoder alone", faster, name)
    _panel(work, frontier, lambda row: 100 * row.gflops_share)
    label(work, "operations of the encoder", "% of the untouched model's GFLOPs", name)
    work.invert_xaxis()  # fewer are better
    handles, labels = whole.get_legend_handles_labels()
    for axes in (whole, encoder, work):
        axes.get_legend().remove()
        axes.margins(0.1)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8
    )
    _name_amounts(whole, frontier, lambda row: row.per_second / first.per_second)
    _name_amounts(encoder, frontier, lambda row: row.encoded_per_second / first.encoded_per_second)
    _name_amounts(work, frontier, lambda row: 100 * row.gflops_share)
    return figure


def _panel(axes: Axes, frontier: Frontier, across: Callable[[Row], float]) -> None:
    """Draw a line per kind of setting, from the untouched model through its amounts."""
    first = frontier.rows[0]
    for kind, (colour, style) in STYLES.items():
        rows = [row for row in frontier.rows if row.kind == kind]
        if not rows:
            continue
        x = [across(row) for row in (first, *rows)]
        y = [row.quality for row in (first, *rows)]
        axes.plot(x, y, style, color=colour, markersize=4, linewidth=1, label=kind)
    axes.plot(across(first), first.quality, "*", label=UNTOUCHED.kind, **STAR)


def _name_amounts(axes: Axes, frontier: Frontier, across: Callable[[Row], float]) -> None:
    """Write the amount of each setting beside its point, over no other point or name."""
    named = [row for row in frontier.rows if row.kind in STYLES and row.kind != TRAINED.kind]
    named = [row for row in named if not row.shares]
    points = [(across(row), row.quality) for row in named]
    colours = [STYLES[row.kind][0] for row in named]
    name_points(axes, points, [f"{row.amount:g}" for row in named], colours)
