"""Formatting inside a sentence, carried over to the same phrase of its translation.

A phrase between tags is translated by itself, too. Where the translation of the sentence contains
that of the phrase, once, the tags are put around it.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from seq2see.text.documents.pieces import Escape, Kind, Piece, raw_of, text_of, translatable
from seq2see.text.documents.places import Place, ends_words, places

FULL_STOPS = ".!?…。！？"


class Run(NamedTuple):
    """A part of a sentence between tags."""

    pieces: Sequence[Piece]
    formatted: bool
    tags: str  # before it, as they are written

    @property
    def is_asked(self) -> bool:
        """Whether a translation of its own is needed."""
        return self.formatted and translatable(self.pieces)


def runs(pieces: Sequence[Piece]) -> list[Run] | None:
    """Part a sentence at its tags; None where they are nested, or are not in pairs."""
    groups = [list(group) for _, group in groupby(pieces, lambda piece: bool(piece.text))]
    texts, tags = groups[::2], groups[1::2]  # a sentence begins and ends with text
    kinds = [{piece.kind for piece in group} for group in tags]
    if any(kind not in ({Kind.OPEN}, {Kind.CLOSE}) for kind in kinds):
        return None
    if any(first == second for first, second in pairwise(kinds)):
        return None
    formatted = bool(kinds) and kinds[0] == {Kind.CLOSE}
    result = []
    for text, before in zip(texts, ["", *map(raw_of, tags)], strict=True):
        result.append(Run(text, formatted, before))
        formatted = not formatted
    return result


def with_tags(
    translation: str,
    pieces: Sequence[Piece],
    runs: Sequence[Run],
    translated: Sequence[str],
    escape: Escape,
) -> str | None:
    """Write a translation with its kept pieces and its tags; None if a phrase is not found.

    `translated` has the translations of the runs that are asked for.
    """
    kept, _ = places(translation, pieces)
    phrases = iter(translated)
    bounds = [0]
    for run in runs:
        if run.formatted:
            own = next(phrases) if run.is_asked else text_of(run.pieces)
            found = _find(translation, bounds[-1], run, own, kept)
            if found is None:
                return None
            bounds += found
    edges = _edges(translation, bounds, runs)
    if edges is None or any(place.start < edge < place.end for place in kept for edge in edges):
        return None
    tags = [(edge, edge, run.tags) for edge, run in zip(edges, runs[1:], strict=True)]
    return _written(translation, kept, tags, escape)


def _find(
    translation: str, start: int, run: Run, translated: str, kept: Sequence[Place]
) -> tuple[int, int] | None:
    """Find a phrase in the rest of a translation, where it occurs once, in any case."""
    own = {id(piece) for piece in run.pieces}
    inside = [place for place in kept if id(place.piece) in own]
    if inside and not run.is_asked:
        return inside[0].start, inside[-1].end
    if not text_of(run.pieces).rstrip().endswith(tuple(FULL_STOPS)):
        translated = translated.rstrip(FULL_STOPS + " ")
    sentence = translation.lower()
    wanted = translated.strip().lower()
    if not wanted or len(sentence) != len(translation):
        return None
    first = sentence.find(wanted, start)
    last = first + len(wanted)
    if first < 0 or sentence.find(wanted, first + 1) >= 0 or not ends_words(sentence, first, last):
        return None
    return first, last


def _edges(translation: str, bounds: Sequence[int], runs: Sequence[Run]) -> list[int] | None:
    """The places of the tags; None if they part the translation in another way than the source."""
    edges = list(bounds[1:])
    if runs[0].formatted and edges.pop(0) > 0:
        return None
    if runs[-1].formatted and edges.pop() < len(translation):
        return None
    texts = [translation[start:end] for start, end in pairwise([0, *edges, len(translation)])]
    outlines = zip(texts, runs, strict=True)
    return edges if all(_alike(text, text_of(run.pieces)) for text, run in outlines) else None


def _alike(text: str, other: str) -> bool:
    """Tell whether both texts have words, or both are white space; parsers of HTML ask for it."""
    return bool(text) == bool(other) and bool(text.strip()) == bool(other.strip())


def _written(
    translation: str,
    kept: Sequence[Place],
    tags: Sequence[tuple[int, int, str]],
    escape: Escape,
) -> str:
    texts = [(place.start, place.end, _raw(translation, place, escape)) for place in kept]
    written = []
    position = 0
    for start, end, raw in sorted([*tags, *texts]):
        written += [escape(translation[position:start]), raw]
        position = end
    return "".join([*written, escape(translation[position:])])


def _raw(translation: str, place: Place, escape: Escape) -> str:
    text = translation[place.start : place.end]
    return place.piece.raw if text == place.piece.text else escape(text)
