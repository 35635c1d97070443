"""Repair of a translation that has lost a term or a number.

What was lost is translated by itself. Where the sentence has that translation, as often as it was
lost, it is replaced: "bicycle" by the glossary's "bike", "three" by 3.
"""

import re
from collections import Counter
from collections.abc import Sequence

from seq2see.text.documents.glossary import LETTER, whole_words
from seq2see.text.documents.pieces import Kind, Piece
from seq2see.text.documents.sentences import base

FULL_STOPS = ".!?…。！？ "
SHORTEST_STEM, LONGEST_ENDING = 3, 2  # letters
ARTICLES = {
    "de": "der die das ein eine einen einem einer",
    "en": "a an the",
    "es": "el la los las un una",
    "fr": "le la les un une des",
    "it": "il lo la i gli le un uno una",
    "nl": "de het een",
    "pt": "o a os as um uma",
}


def repairable(piece: Piece) -> bool:
    """Tell whether a piece means something by itself: a term or a number does."""
    if piece.kind is Kind.KEPT:
        return not any(map(str.isalpha, piece.text))
    return piece.kind is Kind.TERM


def substituted(translation: str, lost: Sequence[tuple[Piece, str]], target: str) -> str | None:
    """Replace the translations of lost pieces by what is wanted; None where they do not occur."""
    counts = Counter(piece.text for piece, _ in lost)
    for piece, alone in dict((piece.text, (piece, alone)) for piece, alone in lost).values():
        own = _without_article(alone.strip(FULL_STOPS), target)
        matches = _occurrences(own, translation) if own else []
        if len(matches) != counts[piece.text] or own == translation.strip(FULL_STOPS):
            return None
        for match in reversed(matches):
            at_start = piece.kind is Kind.TERM and match.start() == 0
            form = piece.forms[-1] if at_start else piece.forms[0]
            translation = translation[: match.start()] + form + translation[match.end() :]
    return translation


def _occurrences(own: str, translation: str) -> list[re.Match[str]]:
    """Find words in a translation, in any case; one word by itself in its other forms, too."""
    exact = list(whole_words([own]).finditer(translation))
    if exact or " " in own:
        return exact
    words = re.finditer(LETTER + "+", translation)
    return [word for word in words if _inflected(own.lower(), word.group().lower())]


def _inflected(word: str, other: str) -> bool:
    """Tell whether two words may be forms of one: dog and dogs, woman and women."""
    stem = max(SHORTEST_STEM, max(len(word), len(other)) - LONGEST_ENDING)
    return len(word) >= stem and word[:stem] == other[:stem]


def _without_article(text: str, language: str) -> str:
    """Drop the article that a model likes to put before a single noun."""
    article, _, rest = text.partition(" ")
    return rest if article.lower() in ARTICLES.get(base(language), "").split() else text
