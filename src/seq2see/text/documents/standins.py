"""Stand-ins: words that take the place of what a translation lost, and give it back.

A model whose recipe has `data.exchange` was trained to copy them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from seq2see.text.documents.pieces import Kind, Piece, text_of
from seq2see.text.documents.places import ends_words

COUNT = 9  # the model learns so many
STAND_INS = tuple(f"X{number}" for number in range(1, COUNT + 1))


def stand_ins(pieces: Sequence[Piece], lost: Iterable[Piece]) -> dict[str, Piece]:
    """Choose a stand-in for each lost piece, in their order; none if there are not enough."""
    text = text_of(pieces)
    free = [word for word in STAND_INS if word not in text]
    wanted = {id(piece) for piece in lost}
    replaced = [piece for piece in pieces if id(piece) in wanted]
    return dict(zip(free, replaced, strict=False)) if len(replaced) <= len(free) else {}


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
