"""Splitting of text into words by language, and their joining."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

from seq2see.errors import InputError
from seq2see.text.detokenising import detokenise
from seq2see.text.documents.sentences import base

# spaCy's classes for these languages need a library each; its general rules know spaces and marks.
GENERAL_RULES = {"ko", "vi"}
# PyPI's names of what a segmenter needs, and the extra that brings it.
LIBRARIES = {
    "spacy": ("spacy",),
    "characters": (),
    "jieba": ("jieba",),
    "fugashi": ("fugashi", "unidic-lite"),
}
OFTEN_SPACED = (*":;!?«»",)  # by French rules
LETTERS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese, Japanese
# Those one by one, other letters in words, digits and marks one by one.
CHARACTERS = re.compile(rf"[{LETTERS}]|[^\W\d_{LETTERS}]+|.", re.DOTALL)


class Segmenter(Protocol):
    """Rules that split a text into words, and join words to a text."""

    @property
    def name(self) -> str: ...

    def split(self, text: str) -> list[str]: ...

    def learn(self, text: str) -> list[str]:
        """Split a training text, and learn from its spaces."""

    def join(self, words: Sequence[str]) -> str: ...

    @property
    def spaced(self) -> list[str]:
        """Marks that stand between spaces, where `learn` found so."""


class Rules:
    """spaCy's rules for a language; spaces are not tokens, and `detokenise` sets them again."""

    name = "spacy"

    def __init__(self, language: str, spaced: Iterable[str] = ()) -> None:
        self._tokenizer = _rules(language)
        # German rules keep "T-Shirt" whole and English ones split it. Where compounds stay whole,
        # a "-" of its own is a dash.
        self._splits_hyphens = len(self._tokenizer("a-b")) == 3
        self._votes: Counter[str] = Counter({mark: 1 for mark in spaced})

    def split(self, text: str) -> list[str]:
        return [token.text for token in self._tokenizer(text)]

    def learn(self, text: str) -> list[str]:
        tokens = list(self._tokenizer(text))
        for before, token in pairwise(tokens):
            # No-break spaces are tokens of their own: `split` and `join` keep them.
            if token.text in OFTEN_SPACED and token.text != "«" and not before.is_space:
                self._votes[token.text] += 1 if before.whitespace_ else -1
            if before.text == "«" and not token.is_space:
                self._votes["«"] += 1 if before.whitespace_ else -1
        return [token.text for token in tokens]

    def join(self, words: Sequence[str]) -> str:
        return detokenise(words, self._splits_hyphens, frozenset(self.spaced))

    @property
    def spaced(self) -> list[str]:
        return [mark for mark in OFTEN_SPACED if self._votes[mark] > 0]


class Unspaced:
    """Words of a language without spaces; the few spaces of a text are tokens."""

    def __init__(self, name: str, cut: Callable[[str], Iterable[str]]) -> None:
        self.name = name
        self.spaced: list[str] = []
        self._cut = cut

    def split(self, text: str) -> list[str]:
        return list(self._cut(" ".join(text.split())))

    def learn(self, text: str) -> list[str]:
        return self.split(text)

    def join(self, words: Sequence[str]) -> str:
        return " ".join("".join(words).split())


def name_of(language: str, chinese: str) -> str:
    """Name the segmenter of a language; that of Chinese is the recipe's choice."""
    return {"zh": chinese, "ja": "fugashi"}.get(base(language), "spacy")


def segmenter(name: str, language: str, spaced: Iterable[str] = ()) -> Segmenter:
    """Make a segmenter; refuse one whose library is not installed."""
    if name == "characters":
        return Unspaced(name, CHARACTERS.findall)
    if name == "jieba":
        return Unspaced(name, _jieba())
    if name == "fugashi":
        return Unspaced(name, _fugashi())
    return Rules(language, spaced)


def _rules(language: str) -> Any:
    """Return spaCy's rule-based tokenizer for a language; it needs no model download."""
    try:
        import spacy
    except ImportError:
        raise InputError("tokenizer.kind 'words' needs spaCy: pip install spacy") from None
    try:
        return _blank(spacy, base(language))
    except (ImportError, AttributeError) as error:  # Thai, say, needs a library of its own
        reason = str(error).splitlines()[0]
        raise InputError(
            f"language {language!r}: spaCy has no rules for its words ({reason})"
        ) from None


@cache
def _blank(spacy: Any, code: str) -> Any:
    general = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
    return spacy.blank(code, config=general if code in GENERAL_RULES else {}).tokenizer


def _jieba() -> Callable[[str], Iterable[str]]:
    """Chinese words by jieba's dictionary; unknown ones by its hidden Markov model."""
    try:
        import jieba
    except ImportError:
        raise InputError(
            "tokenizer.segmenter 'jieba' needs the extra cjk: pip install jieba"
        ) from None
    return _dictionary(jieba)


@cache
def _dictionary(jieba: Any) -> Callable[[str], Iterable[str]]:
    words = jieba.Tokenizer()
    # Its own initialisation would unmarshal a file from a folder that all users can write to.
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    cut: Callable[[str], Iterable[str]] = words.cut
    return cut


def _fugashi() -> Callable[[str], Iterable[str]]:
    """Japanese words by MeCab with the dictionary UniDic, and the spaces between them."""
    try:
        import fugashi
        import unidic_lite
    except ImportError:
        words = "tokenizer.kind 'words' for Japanese"
        raise InputError(f"{words} needs the extra cjk: pip install fugashi unidic-lite") from None
    tagger = fugashi.Tagger(f'-d "{unidic_lite.DICDIR}"')

    def cut(text: str) -> Iterable[str]:
        for word in tagger(text):
            yield from filter(None, (word.white_space, word.surface))

    return cut
