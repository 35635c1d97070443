"""Marking of a passage: spans that come back as they are, or as the glossary has it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seq2see.text.documents.capitals import in_capitals
from seq2see.text.documents.glossary import Glossary
from seq2see.text.documents.names import Lexicon
from seq2see.text.documents.numbers import notations
from seq2see.text.documents.pieces import Escape, Kind, Piece, parted, raw_of, text_of
from seq2see.text.documents.protected import protected
from seq2see.text.documents.quotes import MARKS, quotation_marks


@dataclass(frozen=True)
class Setting:
    """Languages and glossary of a translation, the writing of its format, and what the model knows.

    With a lexicon, names outside it are kept, and its stand-ins take the place of what was lost.
    """

    source: str
    target: str
    glossary: Glossary
    escape: Escape
    lexicon: Lexicon | None = None


class Marked(NamedTuple):
    """A span to keep, and the forms that it may have in a translation."""

    start: int
    end: int
    kind: Kind
    forms: tuple[str, ...]  # the one to put it back in comes first


def marked(pieces: Sequence[Piece], setting: Setting) -> list[Piece]:
    """Turn the protected spans and the terms of a passage into kept pieces."""
    hidden = _hidden(pieces)
    spans = _spans(hidden, setting)
    parts = parted(pieces, [(span.start, span.end) for span in spans])
    result = list(parts[0])
    for span, inside, after in zip(spans, parts[1::2], parts[2::2], strict=True):
        result += _kept(inside, span, setting)
        result += after
    return result


def _hidden(pieces: Sequence[Piece]) -> str:
    """The text of pieces, without what is kept already."""
    return "".join(
        "\ufffc" * len(piece.text) if piece.kind is Kind.KEPT else piece.text for piece in pieces
    )


def _spans(text: str, setting: Setting) -> list[Marked]:
    spans: list[Marked] = []
    end = 0
    lexicon = None if in_capitals(text) else setting.lexicon
    for span in protected(text):
        written = text[span.start : span.end]
        if "\ufffc" in written:
            continue
        spans += _words(text, end, span.start, setting, lexicon)
        end = span.end
        forms: tuple[str, ...] = (written,)
        if span.kind == "number":
            forms = notations(written, setting.source, setting.target)
        spans.append(Marked(span.start, span.end, Kind.KEPT, forms))
    spans += _words(text, end, len(text), setting, lexicon)
    taken = {place for span in spans for place in range(span.start, span.end)}
    for place, mark in quotation_marks(text, setting.target):
        if place not in taken:
            spans.append(Marked(place, place + 1, Kind.QUOTE, (mark, *MARKS)))
    return sorted(spans, key=lambda span: span.start)


def _words(
    text: str, start: int, end: int, setting: Setting, lexicon: Lexicon | None
) -> Iterator[Marked]:
    """Yield the terms of a text without protected spans, and the names between them."""

    def names(start: int, end: int) -> Iterator[Marked]:
        for first, last in lexicon.names(text, setting.source, start, end) if lexicon else ():
            yield Marked(first, last, Kind.NAME, (text[first:last],))

    for first, last, translation in setting.glossary.occurrences(text, start, end):
        yield from names(start, first)
        at_start = translation[0].upper() + translation[1:]  # of a sentence
        yield Marked(first, last, Kind.TERM, (translation, at_start))
        start = last
    yield from names(start, end)


def _kept(pieces: Sequence[Piece], span: Marked, setting: Setting) -> list[Piece]:
    """Make one piece of a span, or one of each of its parts where markup comes between them."""
    whole = all(piece.text for piece in pieces)
    if span.kind is Kind.TERM:
        raw = setting.escape(span.forms[0])
        return [Piece(span.kind, text_of(pieces), raw, span.forms)] if whole else [*pieces]
    if whole:
        return [Piece(span.kind, text_of(pieces), raw_of(pieces), span.forms)]
    if span.kind is Kind.NAME:
        return [*pieces]
    return [
        piece._replace(kind=Kind.KEPT, forms=(piece.text,)) if piece.text else piece
        for piece in pieces
    ]
