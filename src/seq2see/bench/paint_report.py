"""Report and figure of `bench paint`."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seq2see.bench.paint import Frontier, Row
from seq2see.bench.paint_parts import PARTS, TimeByPart
from seq2see.bench.paint_workload import UNTOUCHED
from seq2see.see.figures import BLUE, GREEN, GREY, RED, label
from seq2see.see.labels import name_points
from seq2see.see.tables import table
from seq2see.tasks.painter import TOGETHER

HEADS = ["pixels, merging", "s a picture", "faster", "s for one", "faster", "MB"]
QUALITY = ["% right", "Fréchet", "became wrong", "became right", "p"]
NAMES = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
    "convolutions": "convolutions",
    "rest": "the rest",
}
COLOURS = {  # distinguishable with any colour vision
    "self_attention": BLUE,
    "cross_attention": "#56b4e9",
    "feed_forward": GREEN,
    "convolutions": "#e69f00",
    "rest": "#bbbbbb",
}
LINES = [(BLUE, "o-"), (RED, "s-"), (GREEN, "D-"), ("#cc79a7", "^-"), ("#e69f00", "v-")]
BAR = 0.2  # inches, with the gap to the next


def report(frontier: Frontier) -> list[str]:
    """Return the table of settings, the time by part, and how both were measured, as lines."""
    measured = frontier.quality is not None
    heads = [*HEADS, *QUALITY] if measured else HEADS
    rows = [
        [*_speed_cells(row), *(_quality_cells(row) if measured else [])] for row in frontier.rows
    ]
    parts = ["% of the time", *(NAMES[part] for part in PARTS), "ms a step"]
    return [
        *table([heads, *rows]),
        "",
        *table([parts, *map(_part_cells, frontier.parts)]),
        "",
        *_notes(frontier),
    ]


def _speed_cells(row: Row) -> list[str]:
    return [
        str(row),
        f"{row.seconds_per_picture:.3f}",
        f"{row.speedup:.2f}×",
        f"{row.one_picture_seconds:.3f}",
        f"{row.one_picture_speedup:.2f}×",
        f"{row.peak_memory_mb:,.1f}",
    ]


def _quality_cells(row: Row) -> list[str]:
    """Show what is known: nothing at other sizes, no change from the untouched model to itself."""
    if row.accuracy is None:
        return [""] * len(QUALITY)
    cells = [f"{row.accuracy:.1%}", f"{row.frechet_distance:.3f}"]
    if row.p_value is None:
        return [*cells, "", "", ""]
    return [*cells, str(row.became_wrong), str(row.became_right), f"{row.p_value:.3f}"]


def _part_cells(part: TimeByPart) -> list[str]:
    shares = (f"{part.shares[name]:.1%}" for name in PARTS)
    return [_part_name(part), *shares, f"{1000 * part.seconds_per_step:.2f}"]


def _part_name(part: TimeByPart) -> str:
    return str(part) if part.fused else f"{part}, not fused"


def _notes(frontier: Frontier) -> list[str]:
    rounds = "measured once" if frontier.rounds < 2 else f"medians of {frontier.rounds} rounds"
    sampling = frontier.sampling
    threads = frontier.machine["threads"]
    batch = min(frontier.count, TOGETHER)
    lines = [
        f"{frontier.count} pictures a call, {sampling.steps} steps of {sampling.sampler}, shift "
        f"{sampling.shift:g}, guidance {sampling.guidance:g} · {rounds} · "
        f"{threads} thread{'s' * (threads > 1)}",
        f"memory beside the weights, and processor time by part: a batch of {batch} on one thread",
        f"merging on grids of at least {frontier.min_tokens} positions",
    ]
    quality = frontier.quality
    if quality is None:
        lines.append("no quality was measured")
    else:
        lines += [
            f"right: {quality['pictures']:,} prompts of {quality['test']}, by {quality['judge']}; "
            "p: McNemar's exact test against the untouched model",
            f"Fréchet distance from real pictures: {quality['frechet_features']}",
        ]
    if others := sorted({row.size for row in frontier.rows} - {frontier.own_size}):
        sizes = " and ".join(map(str, others))
        lines.append(f"no quality at {sizes} pixels: the model was trained for {frontier.own_size}")
    share = f"{frontier.attention_share:.1%} of the time at {frontier.own_size} pixels"
    return [*lines, f"attention takes {share}: the untouched model, with the fused kernel"]


def draw(frontier: Frontier) -> Figure:
    """Plot accuracy against speed, if it was measured, and the time by part of every setting."""
    height = max(4.2, BAR * len(frontier.parts) + 1.2)
    if frontier.quality is None:
        figure = Figure(figsize=(8, height), layout="constrained")
        _draw_parts(figure.subplots(), frontier)
        return figure
    figure = Figure(figsize=(13, height), layout="constrained")
    accuracy, parts = figure.subplots(1, 2)
    _draw_parts(parts, frontier)
    _draw_accuracy(accuracy, frontier)
    return figure


def _draw_accuracy(axes: Axes, frontier: Frontier) -> None:
    """Draw a line per method, from the untouched model through its ratios."""
    first, *merged = [row for row in frontier.rows if row.size == frontier.own_size]
    points = [_point(first)]
    names = [UNTOUCHED]
    colours = ["black"]
    lines: dict[tuple[str, int], list[Row]] = {}
    for row in merged:
        lines.setdefault((row.method, row.every), []).append(row)
    for number, ((method, every), rows) in enumerate(lines.items()):
        colour, mark = LINES[number % len(LINES)]
        x, y = zip(*map(_point, [first, *rows]), strict=True)
        name = f"merge {method}" if every == 1 else f"merge {method}, every {every} steps"
        axes.plot(x, y, mark, color=colour, markersize=4, linewidth=1, label=name)
        points += map(_point, rows)
        names += [f"{row.ratio:g}" for row in rows]
        colours += [colour] * len(rows)
    axes.plot(*_point(first), "*", color="black", markersize=10, zorder=5)
    title = f"Quality against speed at {frontier.own_size} pixels: up and to the right is better"
    label(axes, title, "times as fast as the untouched model", "% of the prompts painted right")
    axes.margins(0.12)
    name_points(axes, points, names, colours)


def _point(row: Row) -> tuple[float, float]:
    assert row.accuracy is not None
    return row.speedup, 100 * row.accuracy


def _draw_parts(axes: Axes, frontier: Frontier) -> None:
    """Draw a bar per setting, in percent of the untouched model's time at the same size."""
    whole = {
        part.size: part.seconds_per_step
        for part in frontier.parts
        if part.fused and part.method == UNTOUCHED
    }
    lengths = [100 * part.seconds_per_step / whole[part.size] for part in frontier.parts]
    places = range(len(lengths))
    left = [0.0] * len(lengths)
    for name in PARTS:
        widths = _widths(frontier.parts, lengths, name)
        axes.barh(places, widths, 0.75, left, color=COLOURS[name], label=NAMES[name])
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(places, [_part_name(part) for part in frontier.parts])
    axes.set_ylim(len(lengths) - 0.4, -0.6)  # the first on top
    axes.axvline(100, color=GREY, linewidth=0.8, linestyle=":")
    label(axes, "", "% of the untouched model's processor time at the same size", "")
    axes.legend(
        frameon=False, fontsize=7, ncols=len(PARTS), loc="lower center", bbox_to_anchor=(0.5, 1)
    )


def _widths(parts: Sequence[TimeByPart], lengths: Sequence[float], name: str) -> list[float]:
    return [length * part.shares[name] for part, length in zip(parts, lengths, strict=True)]
