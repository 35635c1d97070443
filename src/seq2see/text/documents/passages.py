"""Translation of a passage, such as a line or a paragraph: the sentences in it."""

from collections.abc import Sequence
from itertools import pairwise

from seq2see.text.documents.marking import Setting, marked
from seq2see.text.documents.pieces import Kind, Piece, parted, raw_of, text_of
from seq2see.text.documents.rendering import needs_blank, rendered
from seq2see.text.documents.sentences import sentences, spaced
from seq2see.text.documents.steps import Steps, together


def translated(pieces: Sequence[Piece], setting: Setting) -> Steps[str]:
    """Translate the sentences of a passage; keep the white space and the markup between them."""
    pieces = marked(pieces, setting)
    ranges = list(sentences(_unbroken(pieces), setting.source))
    parts = parted(pieces, ranges)
    results = yield from together(rendered(part, setting) for part in parts[1::2])
    outside = [raw_of(part) for part in parts[::2]]
    for index, (before, after) in enumerate(pairwise(results), start=1):
        outside[index] = _between(before, parts[2 * index], after, setting)
    inside = [*results, ""]
    return "".join(raw for pair in zip(outside, inside, strict=True) for raw in pair)


def _between(before: str, pieces: Sequence[Piece], after: str, setting: Setting) -> str:
    """Write what is between two sentences; a blank only where the target language has it."""
    raw = raw_of(pieces)
    text = text_of(pieces)
    if spaced(setting.source) == spaced(setting.target):
        return raw
    if spaced(setting.target):
        return raw if text or not needs_blank(before, after) else " " + raw
    return raw.replace(" ", "") if text == " " else raw


def _unbroken(pieces: Sequence[Piece]) -> str:
    """The text of a passage; no sentence ends within kept text that has blanks."""
    return "".join(
        "x" * len(piece.text)
        if piece.kind in (Kind.KEPT, Kind.TERM) and " " in piece.text
        else piece.text
        for piece in pieces
    )
