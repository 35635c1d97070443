"""Sentences in capitals: translated in lower case, and written in capitals again."""

import re
from collections.abc import Callable
from unicodedata import category

from seq2see.text.documents.protected import protected
from seq2see.text.documents.steps import Result, Steps

WORD = re.compile(r"[^\W\d_]{2,}")
FEWEST = 2  # words; one in capitals is an abbreviation


def in_capitals(text: str) -> bool:
    """Tell whether a text is in capitals: several words, and no other letter.

    A Chinese sentence with two abbreviations is not.
    """
    plain = _outside(text, lambda part: part, inside=lambda _: " ")
    words = WORD.findall(plain)
    if sum(map(str.isupper, words)) < FEWEST:
        return False
    return not any(letter.islower() or category(letter) == "Lo" for letter in plain)


def lowered(text: str) -> str:
    """Write a text in lower case, but for its addresses, placeholders and the like."""
    return _outside(text, str.lower)


def raised(text: str) -> str:
    """Write a text in capitals, but for its addresses, placeholders and the like."""
    return _outside(text, str.upper)


def translated_in_lower_case(steps: Steps[Result]) -> Steps[Result]:
    """Ask for translations in lower case; hand them on in capitals."""
    try:
        texts = next(steps)
        while True:
            answers = yield list(map(lowered, texts))
            texts = steps.send(list(map(raised, answers)))
    except StopIteration as stop:
        result: Result = stop.value
        return result


def _outside(
    text: str, change: Callable[[str], str], inside: Callable[[str], str] = lambda part: part
) -> str:
    """Change the text outside of what is protected."""
    changed = []
    end = 0
    for span in protected(text):
        changed += [change(text[end : span.start]), inside(text[span.start : span.end])]
        end = span.end
    return "".join([*changed, change(text[end:])])
