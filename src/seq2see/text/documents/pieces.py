"""Pieces of a document: text to translate, text to keep, and markup."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple
from unicodedata import category


class Kind(Enum):
    """Roles of a piece."""

    TEXT = auto()  # to be translated
    KEPT = auto()  # text that comes back as it is
    TERM = auto()  # text that comes back as the glossary has it
    QUOTE = auto()  # a quotation mark, which may come back as another one
    NAME = auto()  # text that comes back as it is if a stand-in keeps its place
    OPEN = auto()  # the start of a formatting
    CLOSE = auto()  # its end
    MARK = auto()  # markup with a place but no extent: a picture, a comment


class Piece(NamedTuple):
    """A piece of a document, as its reader sees it and as it is written."""

    kind: Kind
    text: str  # empty for markup
    raw: str
    forms: tuple[str, ...] = ()  # of kept text: what a translation may have in its place

    @classmethod
    def plain(cls, text: str) -> "Piece":
        return cls(Kind.TEXT, text, text)


Escape = Callable[[str], str]  # text → as it is written in the document


def text_of(pieces: Iterable[Piece]) -> str:
    """The text of pieces, as a reader sees it."""
    return "".join(piece.text for piece in pieces)


def raw_of(pieces: Iterable[Piece]) -> str:
    """The source of pieces, as it is written."""
    return "".join(piece.raw for piece in pieces)


def translatable(pieces: Iterable[Piece]) -> bool:
    """Tell whether there is a letter to translate."""
    return any(piece.kind is Kind.TEXT and any(map(str.isalpha, piece.text)) for piece in pieces)


def parted(pieces: Iterable[Piece], ranges: Sequence[tuple[int, int]]) -> list[list[Piece]]:
    """Part pieces at ranges of their text.

    Returns what is before the first range, the first range, what is between it and the second one,
    and so on: an odd number of lists. Markup at the edge of a range is outside of it.
    """
    bounds = [bound for pair in ranges for bound in pair]
    parts: list[list[Piece]] = [[] for _ in range(len(bounds) + 1)]
    part = 0
    position = 0
    for piece in pieces:
        rest: Piece | None = piece
        while rest is not None:
            inside = part % 2 == 1
            if part < len(bounds) and position >= bounds[part] and (inside or rest.text):
                part += 1
                continue
            room = bounds[part] - position if part < len(bounds) else len(rest.text)
            head, rest = _split(rest, room)
            parts[part].append(head)
            position += len(head.text)
    return parts


def _split(piece: Piece, room: int) -> tuple[Piece, Piece | None]:
    if len(piece.text) <= room or piece.kind is not Kind.TEXT or piece.text != piece.raw:
        return piece, None
    return Piece.plain(piece.text[:room]), Piece.plain(piece.text[room:])


def trimmed(pieces: Sequence[Piece], is_last: bool) -> list[list[Piece]]:
    """Part pieces into marks and white space at the start, words, and marks at the end.

    Marks at the end of the last part of a sentence are left to its words.
    """
    text = text_of(pieces)
    words = [place for place, character in enumerate(text) if category(character)[0] in "LMN"]
    if not words:
        return [list(pieces), [], []]
    end = len(text.rstrip()) if is_last else words[-1] + 1
    return parted(pieces, [(words[0], end)])
