"""Joining of words to text, with spaces where a language has them."""

import re
from collections.abc import Sequence, Set

_ATTACHED_LEFT = {*",.!?;:)]}…%'،؛؟।॥", "..", "...", "'s", "'re", "'ve", "'ll", "'d", "'m", "n't"}
_ATTACHED_RIGHT = {*"([{¿¡#"}
_QUOTES = {'"': '"', "'": "'", "„": '"', "“": '"', "”": '"', "‚": "‘", "‘": "‘", "»": "»", "«": "»"}
_ONE_WORD = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta")}
_INVERTED = re.compile(
    "-(t-)?(ce|elles?|en|ils?|je|la|les?|leur|lui|moi|nous|on|toi|tu|vous|y)", re.I
)
_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff01-\uffef]")  # Chinese and Japanese


def detokenise(words: Sequence[str], splits_hyphens: bool, spaced: Set[str] = frozenset()) -> str:
    """Join words with spaces, except where a mark attaches to its neighbour.

    Marks that are `spaced` stand between spaces, as : ; ! ? « » do in French.
    """
    text = ""
    attached = True
    opened: set[str] = set()
    for position, word in enumerate(words):
        previous = words[position - 1] if position else ""
        left = right = False
        if word not in spaced:
            left, right = _attachment(word, previous, words[position + 1 :], splits_hyphens, opened)
        text += word if attached or left else f" {word}"
        attached = right
    return text


def _attachment(
    word: str, previous: str, rest: Sequence[str], splits_hyphens: bool, opened: set[str]
) -> tuple[bool, bool]:
    """Decide whether a word attaches to its left and to its right neighbour."""
    following = rest[0] if rest else ""
    if quote := _QUOTES.get(word):
        opens = _opens(word, quote, rest, opened)
        return not opens, opens
    if word.isspace():
        # spaCy drops the first of several spaces, and makes one token of the others.
        return word.strip(" ") != "", True
    if word.lower().replace("’", "'") in _ATTACHED_LEFT:
        return True, False
    if (previous.lower(), word.lower()) in _ONE_WORD:
        return True, False
    if word in {"$", "£", "€"}:
        return False, following[:1].isdigit()
    if word in {"-", "—", "/"}:
        inside = previous != "" and following != ""
        digits = previous[-1:].isdigit() and following[:1].isdigit()
        joins = inside and (word == "/" or splits_hyphens or digits)
        return joins, joins
    if _INVERTED.fullmatch(word) and previous[-1:].isalpha():
        return True, False
    elided = len(word) > 1 and word[-1] in "'’"  # French l', Italian dell'
    unspaced = bool(_UNSPACED.match(word[:1]) and _UNSPACED.match(previous[-1:]))
    return unspaced, elided or word in _ATTACHED_RIGHT


def _opens(word: str, quote: str, rest: Sequence[str], opened: set[str]) -> bool:
    """Decide whether a quotation mark opens a quotation, and keep track of those still open."""
    # The same mark can open and close: “ closes in German. A mark that is never closed is an
    # apostrophe.
    closable = quote not in opened and any(_QUOTES.get(later) == quote for later in rest)
    opens = word in "„‚" or (closable and word != "”")
    if opens:
        opened.add(quote)
    else:
        opened.discard(quote)
    return opens
