"""BLEU of one sentence counted by hand, and the n-grams that match."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from seq2see.errors import InputError
from seq2see.scoring.bleu import Scores, score
from seq2see.scoring.tokenization import splitter
from seq2see.see.figures import GREY, RED
from seq2see.see.numbers import Numbers

Line = Literal["-", "--", ":"]
LONGEST = 4  # words of an n-gram
MOST_WORDS = 40
MATCHED, CLIPPED, MISSING = (
    "in the reference",
    "clipped: the reference has fewer",
    "not in the reference",
)
STYLES: dict[str, tuple[str, str, Line]] = {  # face, edge and line of an n-gram's box
    MATCHED: ("#9fd8c5", "#00694b", "-"),
    CLIPPED: ("#fbe3b0", RED, "--"),
    MISSING: ("#eeeeee", GREY, ":"),
}
MARKS = {MATCHED: "✓", CLIPPED: "–", MISSING: "×"}
LANE = 0.5  # inches
LETTER = 0.1  # inches


@dataclass(frozen=True)
class Ngram:
    """An n-gram of the output, and whether it counts."""

    start: int
    words: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class Counted:
    """The factors of BLEU of one sentence."""

    output: list[str]
    reference: list[str]
    ngrams: list[list[Ngram]]  # of 1 to 4 words
    official: Scores  # by sacreBLEU

    def matches(self, n: int) -> tuple[int, int]:
        """Count the n-grams that match, and all of them."""
        ngrams = self.ngrams[n - 1]
        return sum(ngram.verdict == MATCHED for ngram in ngrams), len(ngrams)

    @property
    def precisions(self) -> list[float]:
        """Precisions of 1- to 4-grams; without a match, half of one, then a quarter …"""
        precisions = []
        part = 1.0
        for n in range(1, LONGEST + 1):
            matched, total = map(float, self.matches(n))
            if total and not matched:
                part /= 2
                matched = part
            precisions.append(matched / total if total else 0.0)
        return precisions

    @property
    def brevity_penalty(self) -> float:
        """exp(1 − r/c) of an output with c words, fewer than the r of the reference."""
        if not self.output:
            return 0.0
        return min(1.0, math.exp(1 - len(self.reference) / len(self.output)))

    @property
    def bleu(self) -> float:
        """BP · (p₁ p₂ p₃ p₄)^¼, in percent; 0 without a single right word."""
        if not self.matches(1)[0] or not all(self.precisions):
            return 0.0
        return 100 * self.brevity_penalty * math.prod(self.precisions) ** (1 / LONGEST)

    def factors(self) -> list[str]:
        """List the precisions, and BLEU as the product of all factors."""
        lines = []
        for n, precision in enumerate(self.precisions, start=1):
            matched, total = self.matches(n)
            smoothed = "" if matched or not total else ", smoothed"
            lines.append(f"{n}-grams: {matched} of {total} = {precision:.3f}{smoothed}")
        sizes = f"{len(self.output)} words, reference {len(self.reference)}"
        lines.append(f"brevity penalty: {self.brevity_penalty:.3f} ({sizes})")
        product = " × ".join(f"{precision:.3f}" for precision in self.precisions)
        lines.append(f"BLEU = 100 × {self.brevity_penalty:.3f} × ({product})^¼ = {self.bleu:.2f}")
        return [*lines, f"sacreBLEU: {self.official.bleu:.2f} ({self.official.signature})"]

    def numbers(self) -> list[Numbers]:
        """List every n-gram and its verdict as a table."""
        rows = [
            [str(len(ngram.words)), " ".join(ngram.words), ngram.verdict]
            for ngrams in self.ngrams
            for ngram in ngrams
        ]
        return [Numbers("n-grams of the output", ["n", "n-gram", "verdict"], rows)]


def count(output: str, reference: str, tokenize: str) -> Counted:
    """Count the n-grams of an output, over the words that sacreBLEU counts."""
    split = splitter(tokenize)
    words, expected = split(output), split(reference)
    for name, side in (("OUTPUT", words), ("REFERENCE", expected)):
        if not 1 <= len(side) <= MOST_WORDS:
            raise InputError(f"{name} has {len(side)} words; a figure has 1 to {MOST_WORDS}")
    ngrams = [_verdicts(words, expected, n) for n in range(1, LONGEST + 1)]
    return Counted(words, expected, ngrams, score([output], [reference], tokenize))


def _verdicts(words: Sequence[str], expected: Sequence[str], n: int) -> list[Ngram]:
    """Match n-grams from left to right; each of the reference is used up once."""
    in_reference = Counter(tuple(expected[i : i + n]) for i in range(len(expected) - n + 1))
    left = in_reference.copy()
    ngrams = []
    for start in range(len(words) - n + 1):
        ngram = tuple(words[start : start + n])
        verdict = CLIPPED if in_reference[ngram] else MISSING
        if left[ngram]:
            left[ngram] -= 1
            verdict = MATCHED
        ngrams.append(Ngram(start, ngram, verdict))
    return ngrams


def draw(counted: Counted) -> Figure:
    """Draw the n-grams of the output as boxes over its words, in lanes so that none overlap."""
    words = max(counted.output, counted.reference, key=len)
    column = max(0.5, LETTER * max(map(len, [*counted.output, *counted.reference])) + 0.15)
    lanes = 2 + sum(min(n, len(ngrams)) for n, ngrams in enumerate(counted.ngrams, start=1))
    size = (max(9.0, column * len(words) + 3.4), LANE * lanes + 1.9)
    figure = Figure(figsize=size, layout="constrained")
    title = "BLEU of one sentence, counted by hand"
    figure.suptitle(f"{title}: {counted.bleu:.2f}", fontsize=12, fontweight="bold")
    axes = figure.subplots()
    axes.axis("off")
    axes.set(xlim=(-1.6, len(words) + 0.2), ylim=(-lanes + 0.4, 0.6))
    _words(axes, counted.reference, 0, "reference")
    _words(axes, counted.output, -1, "output")
    top = -2.0
    for n, ngrams in enumerate(counted.ngrams, start=1):
        _lanes(axes, ngrams, n, top)
        matched, total = counted.matches(n)
        height = min(n, len(ngrams))
        middle = top - (height - 1) / 2
        if ngrams:
            axes.text(-1.5, middle, f"{n}-grams\n{matched} of {total}", fontsize=10, va="center")
        top -= height
    keys = [
        Patch(facecolor=face, edgecolor=edge, linestyle=line, label=f"{MARKS[verdict]} {verdict}")
        for verdict, (face, edge, line) in STYLES.items()
    ]
    legend = figure.legend(
        handles=keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    legend.set_title("\n".join(counted.factors()[-3:]))
    legend.get_title().set_fontsize(9)
    return figure


def _words(axes: Axes, words: Sequence[str], y: float, name: str) -> None:
    axes.text(-1.5, y, name, fontsize=10, va="center", fontweight="bold")
    for i, word in enumerate(words):
        axes.text(i + 0.5, y, word, fontsize=11, ha="center", va="center", parse_math=False)


def _lanes(axes: Axes, ngrams: Sequence[Ngram], n: int, top: float) -> None:
    """Draw n-grams that overlap in different lanes."""
    for ngram in ngrams:
        face, edge, line = STYLES[ngram.verdict]
        y = top - ngram.start % n
        box = FancyBboxPatch(
            (ngram.start + 0.08, y - 0.3), n - 0.16, 0.6, boxstyle="round,pad=0,rounding_size=0.1"
        )
        box.set(facecolor=face, edgecolor=edge, linestyle=line, linewidth=1.4)
        axes.add_patch(box)
        text = f"{' '.join(ngram.words)} {MARKS[ngram.verdict]}"
        place = (ngram.start + n / 2, y)
        axes.text(*place, text, fontsize=9, ha="center", va="center", parse_math=False)
