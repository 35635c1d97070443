"""Sentences of a text, by the rules of sentencex for some 300 languages."""

import re
from collections.abc import Iterator

import sentencex

WINDOW = 4000  # characters; the time of sentencex grows with the square of a text without an end
UNSPACED = {"ja", "km", "lo", "my", "th", "yue", "zh"}  # languages without spaces between words
CLAUSE_ENDS = " ，、；：،؛"
SURROGATE = re.compile("[\ud800-\udfff]")


def base(language: str) -> str:
    """The language of a code with a script or region: zh of zh-Hans."""
    return re.split("[-_]", language, maxsplit=1)[0].lower()


def spaced(language: str) -> bool:
    """Tell whether a language writes spaces between words."""
    return base(language) not in UNSPACED


def sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence, without the white space around it.

    A sentence of more than `WINDOW` characters is cut after a space or comma, or else anywhere.
    """
    # sentencex takes line breaks for ends of paragraphs, and refuses surrogates.
    line = SURROGATE.sub("\ufffd", re.sub(r"\s", " ", text))
    for start, end in _pieces(line, base(language)):
        sentence = text[start:end]
        if core := sentence.strip():
            first = start + len(sentence) - len(sentence.lstrip())
            yield first, first + len(core)


def _pieces(text: str, language: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        window = text[start : start + WINDOW]
        ends = _ends(window, language)
        if start + WINDOW < len(text):  # its last sentence may go on
            ends = ends[:-1] or [max(map(window.rfind, CLAUSE_ENDS)) + 1 or WINDOW]
        first = start
        for end in ends:
            yield first, start + end
            first = start + end
        start = first


def _ends(text: str, language: str) -> list[int]:
    ends = {boundary["end_index"] for boundary in sentencex.get_sentence_boundaries(language, text)}
    return sorted({end for end in ends if 0 < end < len(text)} | {len(text)})
