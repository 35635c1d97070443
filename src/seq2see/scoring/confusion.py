"""Confusion matrix of a classifier."""

from collections import Counter
from collections.abc import Sequence

Confusion = dict[str, dict[str, int]]  # right label → guessed label → count, zeros left out

CORNER = "right ↓ said →"
LONGEST_HEAD = 4  # characters of a label that heads its column by name


def confusion_of(right: Sequence[str], guessed: Sequence[str], labels: Sequence[str]) -> Confusion:
    """Count guessed labels by right label, rows and columns in the order of `labels`."""
    counts = Counter(zip(right, guessed, strict=True))
    confusion: Confusion = {}
    for label in labels:
        row = {guess: counts[label, guess] for guess in labels if (label, guess) in counts}
        if row:
            confusion[label] = row
    return confusion


def table(confusion: Confusion) -> list[str]:
    """Show a row per right label and a column per guessed one.

    Columns bear the number of their label's row where a label is too long to head a column.
    """
    guesses = [label for row in confusion.values() for label in row]
    labels = list(dict.fromkeys([*confusion, *guesses]))
    if not labels:
        return []
    heads = sides = labels
    if max(map(len, labels)) > LONGEST_HEAD:
        heads = [str(number) for number in range(1, len(labels) + 1)]
        sides = [f"{number} {label}" for number, label in zip(heads, labels, strict=True)]
    cells = [heads]
    for label in labels:
        row = confusion.get(label, {})
        cells.append([str(row.get(guess) or "·") for guess in labels])
    width = max(len(cell) for row in cells for cell in row) + 2
    side_width = max(map(len, (CORNER, *sides)))
    return [
        f"{side:<{side_width}}" + "".join(f"{cell:>{width}}" for cell in row)
        for side, row in zip((CORNER, *sides), cells, strict=True)
    ]
