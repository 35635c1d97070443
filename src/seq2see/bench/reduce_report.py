"""What merging and pruning save and cost, to read and to look at."""

from collections.abc import Callable

from matplotlib.figure import Figure

from seq2see.bench.reduce import TOLERANCE, TRAINED, UNTOUCHED, Frontier, Row
from seq2see.see.figures import BLUE, GREEN, GREY, RED, label
from seq2see.see.tables import table

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


def lines(found: Frontier) -> list[str]:
    """The table, and what of it pays."""
    first = found.rows[0]
    heads = ["", "a second", "faster", "encoder", "faster", "GFLOPs", "of all", "tokens left", "MB"]
    rows = [
        *table([[*heads, NAMES[found.measure]], *(_cells(row, first) for row in found.rows)]),
        "",
    ]
    rounds = "measured once" if found.rounds < 2 else f"medians of {found.rounds} rounds"
    rows.append(f"{found.count} of {found.text}, {first.tokens_left:.1f} tokens each · {rounds}")
    if found.trained:
        left = " · ".join(f"{each:.1f}" for each in found.rows[1].layer_tokens)
        rows.append(f"{TRAINED}: {found.trained}; tokens left after each layer: {left}")
    against = "these weights without their plan" if found.trained else "the untouched model"
    rule = f"at most {TOLERANCE[found.measure]} {NAMES[found.measure]} below {against}"
    if found.pays is None:
        return [*rows, f"nothing pays here: of what is {rule}, nothing is clearly faster"]
    gain = found.pays.per_second / first.per_second
    return [*rows, f"pays: {found.pays}, {gain:.2f} times as fast and {rule}"]


def _cells(row: Row, first: Row) -> list[str]:
    return [
        str(row),
        f"{row.per_second:,.1f}",
        f"{row.per_second / first.per_second:.2f}×",
        f"{row.encoded_per_second:,.1f}",
        f"{row.encoded_per_second / first.encoded_per_second:.2f}×",
        f"{row.gflops:.3f}",
        f"{row.gflops_share:.0%}",
        f"{row.tokens_left:.1f}",
        f"{row.peak_memory_mb:.1f}",
        f"{row.quality:.2f}",
    ]


def draw(found: Frontier) -> Figure:
    """Quality against speed, of all that happens from input to answer and of the encoder alone; and against FLOPs."""
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    figure.suptitle(
        "Up and to the right is better; dotted: random tokens, to see what the choice is worth",
        fontsize=9,
    )
    first, faster = found.rows[0], "times as fast as the untouched model"
    panels: list[tuple[str, str, Callable[[Row], float]]] = [
        ("from input to answer", faster, lambda row: row.per_second / first.per_second),
        ("encoder alone", faster, lambda row: row.encoded_per_second / first.encoded_per_second),
        (
            "operations of the encoder",
            "% of the untouched model's GFLOPs",
            lambda row: 100 * row.gflops_share,
        ),
    ]
    for axes, (title, below, across) in zip(
        figure.subplots(1, 3, sharey=True), panels, strict=True
    ):
        for kind, (colour, style) in STYLES.items():
            some = [row for row in found.rows if row.kind == kind]
            points = [(across(row), row.quality) for row in (first, *some)]
            if some:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, style, color=colour, markersize=4, linewidth=1, label=kind)
            for row, point in zip(some, points[1:], strict=True):
                amount = "" if kind == TRAINED.kind or row.shares else f"{row.amount:g}"
                axes.annotate(
                    amount, point, (3, 3), textcoords="offset points", fontsize=6, color=colour
                )
        axes.plot(
            across(first),
            first.quality,
            "*",
            color="black",
            markersize=10,
            label=UNTOUCHED.kind,
            zorder=5,
        )
        label(axes, title, below, NAMES[found.measure])
    axes.invert_xaxis()  # fewer are better
    return figure
