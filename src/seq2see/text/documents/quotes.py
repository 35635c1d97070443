"""Quotation marks, and those that the target language has in their place."""

import re
from collections.abc import Iterator

from seq2see.text.documents.sentences import base

MARKS = tuple('"„“”«»')
PAIR = re.compile(r'"(?=\S)[^"]*+"|„[^„“”"]*+[“”"]|“[^“”]*+”|«[^«»]*+»|»[^«»]*+«')
USUAL = ('"', '"')
OF_LANGUAGE = {"de": ("„", "“"), "fr": ("«", "»"), "zh": ("“", "”")}


def quotation_marks(text: str, target: str) -> Iterator[tuple[int, str]]:
    """Yield the place of each mark of a pair, and the mark of the target language."""
    opening, closing = OF_LANGUAGE.get(base(target), USUAL)
    for match in PAIR.finditer(text):
        yield match.start(), opening
        yield match.end() - 1, closing
