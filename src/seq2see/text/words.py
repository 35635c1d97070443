"""Cutting text into words by spaCy's rules, and putting them together again."""

import re
from collections.abc import Sequence
from typing import Any

from seq2see.errors import InputError


def rules(language: str) -> Any:
    """SpaCy's rules that cut text of a language into words; they need no model download."""
    try:
        import spacy
    except ImportError:
        raise InputError(
            "tokenizer.kind 'words' needs spaCy: pip install 'seq2see[words]'"
        ) from None
    try:
        return spacy.blank(language).tokenizer
    except (
        ImportError,
        AttributeError,
    ) as error:  # also rules that need a library of their own: Japanese
        reason = str(error).splitlines()[0]
        raise InputError(
            f"language {language!r}: spaCy has no rules for its words ({reason})"
        ) from None


def whole(text: str) -> str:
    """Replace lone surrogates, which JSON can carry in and no library takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


# What spaCy's rules cut apart is put together again by a few rules that most languages share.
_CLINGS_LEFT = {*",.!?;:)]}…%'", "..", "...", "'s", "'re", "'ve", "'ll", "'d", "'m", "n't"}
_CLINGS_RIGHT = {*"([{¿¡#"}
_QUOTES = {'"': '"', "'": "'", "„": '"', "“": '"', "”": '"', "‚": "‘", "‘": "‘", "»": "»", "«": "»"}
_ONE_WORD = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta")}
_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff01-\uffef]")  # Chinese and Japanese


def detokenise(words: Sequence[str], splits_hyphens: bool) -> str:
    """Put spaces between words, but not where a mark clings to its neighbour."""
    text, clings, opened = "", True, set[str]()
    for position, word in enumerate(words):
        last, rest = words[position - 1] if position else "", words[position + 1 :]
        left, right = _clings(word, last, rest, splits_hyphens, opened)
        text += word if clings or left else f" {word}"
        clings = right
    return text


def _clings(
    word: str, last: str, rest: Sequence[str], splits_hyphens: bool, opened: set[str]
) -> tuple[bool, bool]:
    """Whether a word clings to the one on its left, and to the one on its right."""
    following = rest[0] if rest else ""
    if quote := _QUOTES.get(word):
        # The same mark opens and closes (“ closes in German); one that nothing will close is an apostrophe.
        closable = quote not in opened and any(_QUOTES.get(later) == quote for later in rest)
        opens = word in "„‚" or (closable and word != "”")
        (opened.add if opens else opened.discard)(quote)
        return not opens, opens
    if word.isspace():
        return word.strip(" ") != "", True  # a token of spaces is what follows the first of several
    if word.lower().replace("’", "'") in _CLINGS_LEFT or (last.lower(), word.lower()) in _ONE_WORD:
        return True, False
    if word in {"$", "£", "€"}:
        return False, following[:1].isdigit()
    if word in {"-", "—", "/"}:
        inside = last != "" and following != ""
        digits = last[-1:].isdigit() and following[:1].isdigit()
        tied = inside and (word == "/" or splits_hyphens or digits)
        return tied, tied
    elided = len(word) > 1 and word[-1] in "'’"  # French l', Italian dell'
    unspaced = bool(_UNSPACED.match(word[:1]) and _UNSPACED.match(last[-1:]))
    return unspaced, elided or word in _CLINGS_RIGHT
