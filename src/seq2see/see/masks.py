"""Masks to look at: who may look at whom, and of a closed place why it is closed."""

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
from seq2see.layers.masks import (
    causal_mask,
    order_mask,
    packed_mask,
    padding_mask,
    prefix_mask,
    window_mask,
)
from seq2see.text.vocab import PAD, SPECIALS, UNKNOWN

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
OPEN = "■"
ENDS = set(".!?。！？")  # marks that end a sentence
MOST_WORDS = 40
IN_A_ROW = 4  # panels
REASONS = {  # letter → why a place is closed, and the colour of such places
    "p": ("padding: there is no word", "#c9c9c9"),
    "f": ("the future", "#f5c77e"),
    "w": ("too far away", "#a6dbc4"),
    "o": ("later in the order", "#f3ea8c"),
    "s": ("another sentence", "#e6b8d3"),
}
OPEN_COLOUR = "#2171b5"


@dataclass(frozen=True)
class Example:
    """A sentence and what the masks need to know besides."""

    words: list[str]
    padding: int  # words that a shorter sentence in the same batch lacks
    reach: int
    prefix: int

    @property
    def order(self) -> list[int]:
        """The same for every sentence of this length."""
        return random.Random(1).sample(range(len(self.words)), len(self.words))

    @property
    def sentences(self) -> list[int]:
        """The number of each word's sentence; one ends with its mark."""
        ends = [word in ENDS for word in self.words]
        return list(accumulate(ends[:-1], initial=0))


@dataclass(frozen=True)
class Table:
    """One mask: rows look at columns; a place holds the letters of the reasons that close it, or nothing."""

    kind: str
    rule: str
    words: list[str]
    closed: list[list[str]]


def example(text: str, padding: int | None, reach: int, prefix: int | None) -> Example:
    """The words of a text; by default a third of them is padding and half of them the prefix."""
    words = text.split()
    if not 1 <= len(words) <= MOST_WORDS:
        raise InputError(f"TEXT has {len(words)} words; a table has 1 to {MOST_WORDS}")
    padding = len(words) // 3 if padding is None else padding
    prefix = len(words) // 2 if prefix is None else prefix
    for name, given in (("padding", padding), ("prefix", prefix)):
        if given > len(words):
            raise InputError(f"--{name} {given} must be at most {len(words)}, the number of words")
    return Example(words, padding, reach, prefix)


def tables(kinds: Sequence[str], shown: Example) -> list[Table]:
    """The mask of each kind; `a+b` is open where both are."""
    return [_table(kind, shown) for kind in kinds]


def mask(part: str, shown: Example) -> Tensor:
    """One of the masks of `layers.masks` on this example, (S, S)."""
    length = len(shown.words)
    made: dict[str, Callable[[], Tensor]] = {
        "padding": lambda: padding_mask(
            torch.tensor([[UNKNOWN] * (length - shown.padding) + [PAD] * shown.padding]), PAD
        ),
        "causal": lambda: causal_mask(length),
        "window": lambda: window_mask(length, shown.reach),
        "prefix": lambda: prefix_mask(shown.prefix, length),
        "order": lambda: order_mask(torch.tensor(shown.order)),
        "packed": lambda: packed_mask(torch.tensor([shown.sentences])),
    }
    return made[part]().expand(1, 1, length, length)[0, 0]  # (S, S)


def _table(kind: str, shown: Example) -> Table:
    parts = dict.fromkeys(kind.split("+"))
    rules = _rules(shown)
    for part in parts:
        if part not in rules:
            raise InputError(
                f"--kind {kind!r} is not one of {', '.join(rules)}, or several of them joined by +"
            )
    masks = [(rules[part][0], mask(part, shown).tolist()) for part in parts]
    places = range(len(shown.words))
    closed = [
        ["".join(dict.fromkeys(why for why, m in masks if not m[t][s])) for s in places]
        for t in places
    ]
    lacking = shown.padding if "padding" in parts else 0
    words = [*shown.words[: len(shown.words) - lacking], *[SPECIALS[PAD]] * lacking]
    rule = rules[kind][1] if kind in rules else "open where each of them is"
    return Table(kind, rule, words, closed)


def _rules(shown: Example) -> dict[str, tuple[str, str]]:
    """Of each part the letter of what it closes, and what it leaves open."""
    order = " ".join(str(place + 1) for place in shown.order)
    return {
        "padding": ("p", "words, never padding"),
        "causal": ("f", "itself and what came before"),
        "window": ("w", f"at most {shown.reach} away"),
        "prefix": ("f", f"the first {shown.prefix} and what came before"),
        "order": ("o", f"itself and what came before\nin the order {order}"),
        "packed": ("s", "its own sentence"),
    }


def lines(found: Sequence[Table]) -> list[str]:
    """The tables for a terminal, and what their letters say."""
    rows = ["Rows look at columns.", ""]
    for table in found:
        rows += [f"{table.kind}: {' '.join(table.rule.split())}"]
        columns = [["", *table.words]]
        columns += [
            [word, *(each or OPEN for each in column)]
            for word, column in zip(table.words, zip(*table.closed, strict=True), strict=True)
        ]
        widths = [max(map(cell_len, column)) for column in columns]
        for cells in zip(*columns, strict=True):
            rows.append("  ".join(map(set_cell_size, cells, widths)).rstrip())
        rows.append("")
    return [
        *rows,
        f"{OPEN} may look",
        *(f"{letter} {REASONS[letter][0]}" for letter in _letters(found)),
        *_twice(found),
    ]


def draw(found: Sequence[Table]) -> Figure:
    """The tables side by side, closed places in the colour of their reason."""
    across = min(len(found), IN_A_ROW)
    down = -(-len(found) // IN_A_ROW)
    side = max(1.5, 0.27 * len(found[0].words))
    longest = 0.07 * max(
        cell_len(word) for table in found for word in table.words
    )  # inches, beside and above
    size = (across * (side + longest + 0.4), 1.0 + down * (side + longest + 0.85))
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for panel, table in zip(axes, found, strict=False):
        _panel(panel, table)
    for panel in axes[len(found) :]:
        panel.set_axis_off()
    keys = [Patch(color=OPEN_COLOUR, label="may look")]
    keys += [
        Patch(color=REASONS[letter][1], label=f"{letter}  {REASONS[letter][0]}")
        for letter in _letters(found)
    ]
    title = "Rows look at columns." + "".join(f" {line}" for line in _twice(found))
    legend = figure.legend(
        handles=keys, loc="outside lower center", ncols=3 * across // 2, frameon=False, fontsize=8
    )
    legend.set_title(title)
    legend.get_title().set_fontsize(8)
    return figure


def _panel(axes: Axes, table: Table) -> None:
    colours = [OPEN_COLOUR, *(colour for _, colour in REASONS.values())]
    numbers = [[["", *REASONS].index(why[:1]) for why in row] for row in table.closed]
    axes.imshow(
        numbers,
        cmap=ListedColormap(colours),
        vmin=0,
        vmax=len(colours) - 1,
        interpolation="nearest",
    )
    places = range(len(table.words))
    axes.tick_params(
        length=0, labelsize=7, top=False, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xticks(places, table.words, rotation=90, parse_math=False)
    axes.set_yticks(places, table.words, parse_math=False)
    axes.set_xticks([place - 0.5 for place in places], minor=True)
    axes.set_yticks([place - 0.5 for place in places], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    for row, whys in enumerate(table.closed):
        for column, why in enumerate(whys):
            axes.text(column, row, why, ha="center", va="center", fontsize=6.5, color="#333333")
    axes.set_title(table.kind, fontsize=9, fontweight="bold")
    axes.set_xlabel(table.rule, fontsize=8, labelpad=3)


def _letters(found: Sequence[Table]) -> list[str]:
    used = {letter for table in found for row in table.closed for why in row for letter in why}
    return [letter for letter in REASONS if letter in used]


def _twice(found: Sequence[Table]) -> list[str]:
    twice = any(len(why) > 1 for table in found for row in table.closed for why in row)
    return ["A place with two letters is closed for both reasons."] if twice else []
