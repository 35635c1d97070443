"""Stand-ins: words that take the place of what a translation lost, and give it back.

They are frequent names of the training text, or those that `data.exchange` has put into it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from seq2see.text.documents.pieces import Kind, Piece, text_of
from seq2see.text.documents.places import ends_words

STAND_INS = tuple(f"X{number}" for number in range(1, 10))  # of data.exchange
TRIES = 3  # ways to choose stand-ins


def stand_ins(
    pieces: Sequence[Piece], lost: Sequence[Piece], words: Sequence[str]
) -> list[dict[str, Piece]]:
    """Choose stand-ins for the lost pieces, in their order, in several ways; none may do."""
    text = text_of(pieces)
    free = [word for word in words if word not in text]
    if len(lost) > len(free) or not all(_replaceable(piece, words) for piece in lost):
        return []
    wanted = {id(piece) for piece in lost}
    replaced = [piece for piece in pieces if id(piece) in wanted]
    tries = range(min(TRIES, len(free)))
    return [dict(zip(free[first:] + free[:first], replaced, strict=False)) for first in tries]


def _replaceable(piece: Piece, words: Sequence[str]) -> bool:
    """Tell whether a word can stand in for a piece; a name cannot, for a number."""
    if piece.kind is Kind.QUOTE:
        return False
    return words == STAND_INS or piece.kind is Kind.NAME or any(map(str.isalpha, piece.text))


def with_stand_ins(pieces: Iterable[Piece], chosen: Mapping[str, Piece]) -> list[Piece]:
    """Put the stand-ins in the places of the pieces that they were chosen for."""
    words = {id(piece): word for word, piece in chosen.items()}
    return [piece._replace(text=words.get(id(piece), piece.text)) for piece in pieces]


def restored(translation: str, chosen: Mapping[str, Piece]) -> str | None:
    """Give back what the stand-ins stand for; None unless each occurs once, as a whole word."""
    found = list(re.finditer("|".join(map(re.escape, chosen)), translation))
    if sorted(match.group() for match in found) != sorted(chosen):
        return None
    if not all(ends_words(translation, *match.span()) for match in found):
        return None
    for match in reversed(found):
        piece = chosen[match.group()]
        at_start = piece.kind is Kind.TERM and match.start() == 0
        form = piece.forms[-1] if at_start else piece.forms[0]
        translation = translation[: match.start()] + form + translation[match.end() :]
    return translation
