"""Plain-text tables for the terminal."""

from collections.abc import Sequence

from rich.cells import cell_len


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells: the first column to the left, the others to the right."""
    names, *others = zip(*rows, strict=True)
    width = max(map(cell_len, names))
    columns = [[pad(name, width) for name in names]]
    for column in others:
        width = max(map(len, column))
        columns.append([cell.rjust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def pad(text: str, width: int) -> str:
    """Fill a text with spaces up to a width in terminal cells.

    `str.ljust` counts characters, but a Chinese one takes two cells.
    """
    return text + " " * (width - cell_len(text))
