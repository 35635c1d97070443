"""Exchange of what stands identically on both sides of a pair: numbers and names.

Pairs drawn for (seed, line) are changed in place, so an epoch is no longer than before. Some names
and numbers become stand-ins, which `seq2see.text.documents` puts in the place of what a translation
has lost. Pairs may also get an address or a picture on both sides, quotation marks, or a source in
lower case.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seq2see.text.documents.capitals import lowered
from seq2see.text.documents.protected import protected
from seq2see.text.documents.sentences import base, spaced
from seq2see.text.documents.standins import STAND_INS
from seq2see.text.exchange import made
from seq2see.text.function_words import FUNCTION_WORDS
from seq2see.text.lines import Pair

VERSION = 1  # of the changes
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
STOOD_IN = 0.6  # of the pairs with numbers or names, these become stand-ins
VARIED = 1 / 4  # of the share: other pairs, and pairs with numbers or names that are varied, too
QUOTES = {"de": ("„“", "„“", '""', "»«"), "fr": ("«»", '""'), "zh": ("“”",)}
USUAL_QUOTES = ('""', '""', "“”")

Span = tuple[int, int]
Spans = dict[str, list[Span]]  # by what makes two of them the same
Edit = tuple[int, int, str]  # a span and its new text


class Exchange:
    """The exchange of a share of the pairs; counts what it changes, by kind."""

    def __init__(self, languages: tuple[str, str], share: float, seed: int) -> None:
        self.languages = languages
        self.share = share
        self.seed = seed
        self.counts: Counter[str] = Counter()

    def settings(self) -> dict[str, Any]:
        """Everything that the changes depend on, beside the pairs."""
        return {"exchange": [VERSION, self.share, self.seed, *self.languages]}

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs, some of them changed."""
        self.counts.clear()
        for line, pair in enumerate(pairs):
            chance = random.Random(f"exchange/{self.seed}/{line}")
            yield self._changed(pair, chance) if chance.random() < self.share else pair

    def _changed(self, pair: Pair, chance: random.Random) -> Pair:
        numbers = _shared([_numbers(text) for text in pair])
        names = _shared([_names(*side) for side in zip(pair, self.languages, strict=True)])
        varied = chance.random() < VARIED
        self.counts["pairs"] += bool(numbers or names or varied)
        stand_ins = chance.sample(STAND_INS, len(STAND_INS)) if chance.random() < STOOD_IN else []
        edits: list[list[Edit]] = [[], []]
        for kind, shared in (("numbers", numbers), ("names", names)):
            for key, sides in shared.items():
                fresh = made.digits(key, chance) if kind == "numbers" else made.name(chance)
                stand_in = stand_ins.pop() if stand_ins else None
                self.counts["stand-ins" if stand_in else kind] += 1
                for text, spans, changes in zip(pair, sides, edits, strict=True):
                    changes += (
                        (start, end, stand_in or _as_written(text[start:end], fresh))
                        for start, end in spans
                    )
        source, target = (_edited(*side) for side in zip(pair, edits, strict=True))
        return self._varied((source, target), chance) if varied else (source, target)

    def _varied(self, pair: Pair, chance: random.Random) -> Pair:
        """Add a copy, quote the pair, or write its source in lower case."""
        kind = chance.choices(("copies", "quotations", "lower case"), (4, 1, 4))[0]
        self.counts[kind] += 1
        if kind == "lower case":
            return lowered(pair[0]), pair[1]
        if kind == "copies":
            return self._with_copy(pair, chance)
        source, target = (
            f"{marks[0]}{text}{marks[1]}"
            for text, language in zip(pair, self.languages, strict=True)
            for marks in [chance.choice(QUOTES.get(base(language), USUAL_QUOTES))]
        )
        return source, target

    def _with_copy(self, pair: Pair, chance: random.Random) -> Pair:
        """Put an address, a picture or a stand-in at the beginning or the end of both sides."""
        draw = chance.choice((made.url, made.email, made.emoji, made.emoji, *[None] * 4))
        copy = chance.choice(STAND_INS) if draw is None else draw(chance)
        form = chance.choice(("{1} {0}", "{0} {1}", "{0} {1}", "{0} ({1})", "{1}: {0}"))
        source, target = (
            form.format(text, copy)
            if spaced(language)
            else form.replace(" ", "").format(text, copy)
            for text, language in zip(pair, self.languages, strict=True)
        )
        return source, target


def _shared(sides: Sequence[Spans]) -> dict[str, tuple[list[Span], list[Span]]]:
    """Select spans that occur on both sides, equally often."""
    source, target = sides
    return {
        key: (spans, target[key])
        for key, spans in source.items()
        if len(target.get(key, ())) == len(spans)
    }


def _numbers(text: str) -> Spans:
    """The numbers of a text by their digits; 1 has a grammatical number of its own."""
    numbers: Spans = {}
    for span in protected(text):
        digits = re.sub(r"\D", "", text[span.start : span.end])
        if span.kind == "number" and digits != "1" and digits.isascii():
            numbers.setdefault(digits, []).append((span.start, span.end))
    return numbers


def _names(text: str, language: str) -> Spans:
    """Words with a capital that are no function words."""
    common = FUNCTION_WORDS.get(base(language), frozenset())
    names: Spans = {}
    for match in WORD.finditer(text):
        word = match.group()
        is_name = len(word) > 2 and word[0].isupper() and word[1:].islower()
        if is_name and word.lower() not in common:
            names.setdefault(word, []).append(match.span())
    return names


def _as_written(old: str, fresh: str) -> str:
    """A fresh name, or fresh digits with the marks that the old ones had."""
    if not fresh.isdigit():
        return fresh
    digits = iter(fresh)
    return re.sub(r"\d", lambda _: next(digits), old)


def _edited(text: str, edits: Sequence[Edit]) -> str:
    for start, end, fresh in sorted(edits, reverse=True):
        text = text[:start] + fresh + text[end:]
    return text
