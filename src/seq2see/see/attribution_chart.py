"""Figure of an attribution: a row for each target token, a column for each source token."""

from matplotlib.figure import Figure

from seq2see.see import figures
from seq2see.see.attribution import METHODS, Attribution

SEQUENTIAL = "Blues"
DIVERGING = "RdBu"  # safe for colour blindness; blue speaks for a target token, red against it


def draw(attribution: Attribution) -> Figure:
    """Draw the values with their colour bar; the colours of signed ones are symmetric about 0."""
    method = METHODS[attribution.method]
    rows = figures.shown(attribution.target_tokens)
    columns = figures.shown(attribution.source_tokens)
    size = (2.6 + 0.26 * len(columns), 1.9 + 0.22 * len(rows))
    figure = Figure(figsize=(max(size[0], 5.0), size[1]), layout="constrained")
    figure.suptitle(method.title.capitalize(), fontsize=10, fontweight="bold")
    axes = figure.subplots()
    largest = attribution.values.abs().max().item()
    image = axes.imshow(
        attribution.values.numpy(),
        cmap=DIVERGING if method.signed else SEQUENTIAL,
        vmin=-largest if method.signed else 0.0,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
    )
    axes.tick_params(length=0, labelsize=7)
    axes.set_xticks(range(len(columns)), columns, rotation=90, parse_math=False)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.set_xlabel("source token", fontsize=8)
    axes.set_ylabel("target token", fontsize=8)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(method.unit, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure
