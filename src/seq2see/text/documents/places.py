"""Places of kept texts in a translation."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seq2see.text.documents.glossary import LETTER
from seq2see.text.documents.pieces import Piece
from seq2see.text.documents.protected import Span, protected

WORD = re.compile(LETTER)


class Place(NamedTuple):
    """A kept piece at translation[start:end]."""

    start: int
    end: int
    piece: Piece


def places(translation: str, pieces: Sequence[Piece]) -> tuple[list[Place], list[Piece]]:
    """Find kept pieces at places of their own, from left to right; the second list are lost."""
    kept = [piece for piece in pieces if piece.forms]
    if not kept:
        return [], []
    taken = bytearray(len(translation))
    owners = _owners(translation)
    candidates: dict[str, Iterator[int]] = {}
    result = []
    lost = []
    for piece in sorted(kept, key=lambda piece: -len(piece.forms[0])):
        for form in piece.forms:
            if form not in candidates:
                candidates[form] = _occurrences(translation, form, owners)
            free = (
                start for start in candidates[form] if not any(taken[start : start + len(form)])
            )
            if (start := next(free, None)) is not None:
                end = start + len(form)
                taken[start:end] = b"\1" * len(form)
                result.append(Place(start, end, piece))
                break
        else:
            lost.append(piece)
    return sorted(result), lost


def _owners(text: str) -> list[Span | None]:
    """The protected span of each character."""
    owners: list[Span | None] = [None] * len(text)
    for span in protected(text):
        owners[span.start : span.end] = [span] * (span.end - span.start)
    return owners


def _occurrences(text: str, form: str, owners: Sequence[Span | None]) -> Iterator[int]:
    """Yield the places of a form that are no part of a longer word, number or address."""
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        first = owners[start]
        last = owners[end - 1]
        within = first is None or first.start >= start
        within = within and (last is None or last.end <= end)
        exact = first is not None and (first.start, first.end) == (start, end)
        if exact or (within and ends_words(text, start, end)):
            yield start
        start = text.find(form, start + 1)


def ends_words(text: str, start: int, end: int) -> bool:
    """Tell whether text[start:end] is no part of a longer word."""
    return not any(
        0 < place < len(text) and WORD.match(text[place - 1]) and WORD.match(text[place])
        for place in (start, end)
    )
