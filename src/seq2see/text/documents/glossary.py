"""Glossary: terms whose translations the user has chosen."""

import re
from collections.abc import Iterator, Mapping

from seq2see.errors import InputError

# Letters and digits of scripts with spaces between words; beside one of them, a term is a part of
# a word. Korean attaches particles to nouns.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
LETTER = rf"[^\W_{UNSPACED}]"
# Not between two letters. Case makes no difference to these classes, but folding them takes time.
EDGE = rf"(?-i:(?<!{LETTER})|(?!{LETTER}))"
# The same in a JSON schema: a line of text that is not blank.
BREAKS = r"\n-\r\u001c-\u001f\u0085\u2028\u2029"
LINE = rf"^[^\S{BREAKS}]*[^\s{BREAKS}][^{BREAKS}]*$"


class Glossary:
    """Terms and their translations; a term is a whole word or several, in any case."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        self._translations: dict[str, str] = {}
        for term, translation in terms.items():
            for name, text in (("term", term), ("translation", translation)):
                if not re.fullmatch(LINE, text):
                    raise InputError(f"glossary: the {name} {text!r} must be one line of text")
            self._translations[term.strip().lower()] = translation.strip()
        longest_first = sorted(self._translations, key=len, reverse=True)
        self._pattern = whole_words(longest_first) if longest_first else None

    def occurrences(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield start and end of each term in text[start:end], and its translation."""
        for match in self._pattern.finditer(text, start, end) if self._pattern else ():
            if translation := self._translations.get(match.group().lower()):
                yield *match.span(), translation


def whole_words(words: list[str]) -> re.Pattern[str]:
    """Compile a pattern of words, in any case, that are no part of other words."""
    return re.compile(f"{EDGE}(?:{'|'.join(map(re.escape, words))}){EDGE}", re.IGNORECASE)
