"""Formatting inside a sentence, carried over to the same phrase of its translation.

A phrase between tags is translated by itself, too. Where that translation occurs in the sentence's
once, the tags are put around it.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from seq2see.text.documents.pieces import Escape, Kind, Piece, raw_of, text_of
from seq2see.text.documents.places import Place, ends_words

FULL_STOPS = ".!?…。！？"


class Phrase(NamedTuple):
    """A formatted part of a sentence."""

    before: str  # its tags as they are written; empty if they are outside of the sentence
    pieces: Sequence[Piece]
    after: str


def phrases(pieces: Sequence[Piece]) -> list[Phrase] | None:
    """List the formatted phrases; None where tags are nested, or mark no phrase."""
    groups = [(bool(text), list(group)) for text, group in groupby(pieces, lambda p: bool(p.text))]
    tags = [group for is_text, group in groups if not is_text]
    texts = [group for is_text, group in groups if is_text]
    kinds = [{piece.kind for piece in group} for group in tags]
    opens = [kind == {Kind.OPEN} for kind in kinds]
    if any(len(kind) > 1 or Kind.MARK in kind for kind in kinds):
        return None
    if any(first == second for first, second in pairwise(opens)):
        return None
    raws = [raw_of(group) for group in tags]
    result = []
    for index, text in enumerate(texts):
        opened = opens[index - 1] if index else bool(opens) and not opens[0]
        if opened:
            before = raws[index - 1] if index else ""
            after = raws[index] if index < len(raws) else ""
            result.append(Phrase(before, text, after))
    return result


def with_markup(
    translation: str,
    kept: Sequence[Place],
    formatted: Sequence[Phrase],
    translated: Sequence[str],
    escape: Escape,
) -> str | None:
    """Write a translation with its kept pieces and its tags; None if a phrase is not found."""
    inserts: list[tuple[int, str]] = []
    position = 0
    for phrase, text in zip(formatted, translated, strict=True):
        found = _find(translation, position, phrase, text)
        if found is None or any(_straddles(place, found) for place in kept):
            return None
        start, position = found
        inserts += [(start, phrase.before), (position, phrase.after)]
    return _written(translation, kept, inserts, escape)


def _find(
    translation: str, position: int, phrase: Phrase, translated: str
) -> tuple[int, int] | None:
    """Find a phrase once in the rest of a translation, in any case."""
    if not text_of(phrase.pieces).rstrip().endswith(tuple(FULL_STOPS)):
        translated = translated.rstrip(FULL_STOPS + " ")
    sentence = translation.lower()
    wanted = translated.lower()
    if not wanted or len(sentence) != len(translation):
        return None
    start = sentence.find(wanted, position)
    end = start + len(wanted)
    if start < 0 or sentence.find(wanted, start + 1) >= 0 or not ends_words(sentence, start, end):
        return None
    outside = (not phrase.before and start > 0) or (not phrase.after and end < len(sentence))
    return None if outside else (start, end)


def _straddles(place: Place, found: tuple[int, int]) -> bool:
    return any(place.start < edge < place.end for edge in found)


def _written(
    translation: str, kept: Sequence[Place], inserts: Sequence[tuple[int, str]], escape: Escape
) -> str:
    written = []
    position = 0
    tags = [(start, start, raw) for start, raw in inserts]
    texts = [(place.start, place.end, _kept_raw(translation, place, escape)) for place in kept]
    # A tag that closes where a kept piece begins comes first; one that opens there, too.
    for start, end, raw in sorted([*tags, *texts], key=lambda item: item[:2]):
        written += [escape(translation[position:start]), raw]
        position = end
    return "".join([*written, escape(translation[position:])])


def _kept_raw(translation: str, place: Place, escape: Escape) -> str:
    text = translation[place.start : place.end]
    return place.piece.raw if text == place.piece.text else escape(text)
