"""Mask tables: which keys each query may attend to, and why the others are masked."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.cells import cell_len, set_cell_size
from torch import Tensor

from seq2see.errors import InputError
from seq2see.layers.mask_patterns import order_mask, packed_mask, prefix_mask, window_mask
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.see.numbers import Numbers
from seq2see.text.specials import PAD, SPECIALS, UNKNOWN

KINDS = [
    "padding",
    "causal",
    "window",
    "prefix",
    "order",
    "packed",
    "causal+padding",
    "window+causal",
]
SENTENCE_ENDS = set(".!?。！？")
MAX_WORDS = 40
PANELS_PER_ROW = 4
OPEN = "■"
OPEN_LABEL = "may attend"
OPEN_COLOUR = "#2171b5"
REASONS = {  # letter → why a cell is masked, and its colour
    "p": ("padding token", "#c9c9c9"),
    "f": ("later position", "#f5c77e"),
    "w": ("outside the window", "#a6dbc4"),
    "o": ("later in the order", "#f3ea8c"),
    "s": ("another sentence", "#e6b8d3"),
}
AXES = "Rows are query positions, columns are key positions."


@dataclass(frozen=True)
class Example:
    """A sentence and the parameters of the masks drawn on it."""

    words: list[str]
    padding: int  # padding tokens at the end
    reach: int  # of the window, to each side
    prefix: int  # words in the prefix

    @property
    def order(self) -> list[int]:
        """A random order of the words, the same for all sentences of this length."""
        return random.Random(1).sample(range(len(self.words)), len(self.words))

    @property
    def sentences(self) -> list[int]:
        """The sentence number of each word; a sentence includes its closing mark."""
        ends = [word in SENTENCE_ENDS for word in self.words]
        return list(accumulate(ends[:-1], initial=0))


@dataclass(frozen=True)
class Table:
    """One mask as letters: a cell holds its reasons for being masked, or "" if it is open."""

    kind: str
    rule: str
    words: list[str]
    reasons: list[list[str]]  # by query, by key


def parse(text: str, padding: int | None, reach: int, prefix: int | None) -> Example:
    """Split a text into words; by default a third of them is padding and half of them prefix."""
    words = text.split()
    if not 1 <= len(words) <= MAX_WORDS:
        raise InputError(f"TEXT has {len(words)} words; a table has 1 to {MAX_WORDS}")
    padding = len(words) // 3 if padding is None else padding
    prefix = len(words) // 2 if prefix is None else prefix
    for option, count in (("padding", padding), ("prefix", prefix)):
        if count > len(words):
            raise InputError(
                f"--{option} {count} must be at most {len(words)}, the number of words"
            )
    return Example(words, padding, reach, prefix)


def tables(kinds: Sequence[str], example: Example) -> list[Table]:
    """Tabulate the mask of each kind; `a+b` is open where both are."""
    return [_table(kind, example) for kind in kinds]


def mask(kind: str, example: Example) -> Tensor:
    """Build one of the masks of `layers.masks` for an example, (S, S)."""
    length = len(example.words)
    ids = [UNKNOWN] * (length - example.padding) + [PAD] * example.padding
    masks: dict[str, Callable[[], Tensor]] = {
        "padding": lambda: padding_mask(torch.tensor([ids]), PAD),
        "causal": lambda: causal_mask(length),
        "window": lambda: window_mask(length, example.reach),
        "prefix": lambda: prefix_mask(example.prefix, length),
        "order": lambda: order_mask(torch.tensor(example.order)),
        "packed": lambda: packed_mask(torch.tensor([example.sentences])),
    }
    return masks[kind]().expand(1, 1, length, length)[0, 0]  # (S, S)


def _table(kind: str, example: Example) -> Table:
    parts = dict.fromkeys(kind.split("+"))
    rules = _rules(example)
    for part in parts:
        if part not in rules:
            raise InputError(
                f"--kind {kind!r} is not one of {', '.join(rules)}, or several of them joined by +"
            )
    length = len(example.words)
    reasons = [[""] * length for _ in range(length)]
    for part in parts:
        letter, _ = rules[part]
        for t, s in (~mask(part, example)).nonzero().tolist():
            if letter not in reasons[t][s]:
                reasons[t][s] += letter
    padding = example.padding if "padding" in parts else 0
    words = [*example.words[: length - padding], *[SPECIALS[PAD]] * padding]
    rule = rules[kind][1] if kind in rules else "open where every mask is open"
    return Table(kind, rule, words, reasons)


def _rules(example: Example) -> dict[str, tuple[str, str]]:
    """Map each mask to the letter of its reason and to the keys that it leaves open."""
    order = " ".join(str(position + 1) for position in example.order)
    return {
        "padding": ("p", "all but padding tokens"),
        "causal": ("f", "itself and earlier positions"),
        "window": ("w", f"at most {example.reach} away"),
        "prefix": ("f", f"the first {example.prefix}, itself and earlier ones"),
        "order": ("o", f"itself and earlier ones\nin the order {order}"),
        "packed": ("s", "its own sentence"),
    }


def report(tables: Sequence[Table]) -> list[str]:
    """Format the tables for a terminal, followed by a legend."""
    lines = [AXES, ""]
    for table in tables:
        lines += [f"{table.kind}: {' '.join(table.rule.split())}", *_grid(table), ""]
    lines.append(f"{OPEN} {OPEN_LABEL}")
    lines += [f"{letter} {REASONS[letter][0]}" for letter in _letters(tables)]
    return [*lines, *_note(tables)]


def _grid(table: Table) -> list[str]:
    rows = [["", *table.words]]
    for word, reasons in zip(table.words, table.reasons, strict=True):
        rows.append([word, *(letters or OPEN for letters in reasons)])
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def numbers(tables: Sequence[Table]) -> list[Numbers]:
    """List the tables as those of a page: the letters of the reasons, or ■."""
    head = "query ↓  key →"
    return [
        Numbers(
            f"{table.kind}: {' '.join(table.rule.split())}",
            [head, *table.words],
            [
                [word, *(letters or OPEN for letters in reasons)]
                for word, reasons in zip(table.words, table.reasons, strict=True)
            ],
        )
        for table in tables
    ]


def draw(tables: Sequence[Table]) -> Figure:
    """Draw the tables as panels, masked cells in the colour of their first reason."""
    across = min(len(tables), PANELS_PER_ROW)
    down = -(-len(tables) // PANELS_PER_ROW)
    side = max(1.5, 0.27 * len(tables[0].words))
    longest = max(cell_len(word) for table in tables for word in table.words)
    margin = 0.07 * longest  # inches, for the words on the left and above
    size = (across * (side + margin + 0.4), 1.0 + down * (side + margin + 0.85))
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, table in zip(panels, tables, strict=False):
        _panel(axes, table)
    for axes in panels[len(tables) :]:
        axes.set_axis_off()
    keys = [Patch(color=OPEN_COLOUR, label=OPEN_LABEL)]
    for letter in _letters(tables):
        reason, colour = REASONS[letter]
        keys.append(Patch(color=colour, label=f"{letter}  {reason}"))
    legend = figure.legend(
        handles=keys, loc="outside lower center", ncols=3 * across // 2, frameon=False, fontsize=8
    )
    legend.set_title(" ".join([AXES, *_note(tables)]))
    legend.get_title().set_fontsize(8)
    return figure


def _panel(axes: Axes, table: Table) -> None:
    colours = [OPEN_COLOUR, *(colour for _, colour in REASONS.values())]
    first_letters = ["", *REASONS]
    numbers = [[first_letters.index(letters[:1]) for letters in row] for row in table.reasons]
    axes.imshow(
        numbers,
        cmap=ListedColormap(colours),
        vmin=0,
        vmax=len(colours) - 1,
        interpolation="nearest",
    )
    positions = range(len(table.words))
    axes.tick_params(
        length=0, labelsize=7, top=False, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xticks(positions, table.words, rotation=90, parse_math=False)
    axes.set_yticks(positions, table.words, parse_math=False)
    borders = [position - 0.5 for position in positions]
    axes.set_xticks(borders, minor=True)
    axes.set_yticks(borders, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    for t, row in enumerate(table.reasons):
        for s, letters in enumerate(row):
            axes.text(s, t, letters, ha="center", va="center", fontsize=6.5, color="#333333")
    axes.set_title(table.kind, fontsize=9, fontweight="bold")
    axes.set_xlabel(table.rule, fontsize=8, labelpad=3)


def _letters(tables: Sequence[Table]) -> list[str]:
    """List the letters that the tables use, in the order of the legend."""
    used = {letter for cell in _cells(tables) for letter in cell}
    return [letter for letter in REASONS if letter in used]


def _note(tables: Sequence[Table]) -> list[str]:
    if any(len(cell) > 1 for cell in _cells(tables)):
        return ["A cell with several letters is masked for each of these reasons."]
    return []


def _cells(tables: Sequence[Table]) -> list[str]:
    return [cell for table in tables for row in table.reasons for cell in row]
