"""Word tokenizer: spaCy's rules split text into words, a few rules of our own join them again."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS
from seq2see.text.vocab import Vocab


class Words:
    """Words and punctuation marks as spaCy's rules for a language split them."""

    def __init__(self, vocab: Vocab, language: str) -> None:
        self.vocab = vocab
        self.language = language
        self._split = rules(language)
        # German rules keep "T-Shirt" whole and English ones split it. Where compounds stay whole,
        # a "-" of its own is a dash.
        self._splits_hyphens = len(self._split("a-b")) == 3

    @classmethod
    def train(
        cls, texts: Iterable[str], language: str, min_frequency: int, size: int | None
    ) -> "Words":
        """Count the words of the training text; those rarer than `min_frequency` become <unk>."""
        split = rules(language)
        # White space counts: spaCy makes tokens of the second of two spaces and of a no-break
        # space. They are among the 8,316 German and 6,384 English entries of Multi30k, and
        # `decode` restores them.
        counts = Counter(token.text for text in texts for token in split(without_surrogates(text)))
        return cls(Vocab.build(counts, min_frequency, size), language)

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        return self.vocab.ids(self.pieces(text))

    def decode(self, ids: Sequence[int]) -> str:
        words = self.vocab.words(id for id in ids if id not in (BEGIN, END, PAD))
        return detokenise(words, self._splits_hyphens)

    def pieces(self, text: str) -> list[str]:
        return [token.text for token in self._split(without_surrogates(text))]

    def sample(self, text: str, generator: random.Random) -> list[int]:
        return self.encode(text)

    def piece(self, id: int) -> str:
        return self.vocab.words([id])[0]

    def save(self, path: Path) -> None:
        write_vocab(self.vocab, path)

    @classmethod
    def load(cls, path: Path, language: str) -> "Words":
        """Read the vocabulary that `save` wrote."""
        return cls(read_vocab(path), language)


def rules(language: str) -> Any:
    """Return spaCy's rule-based tokenizer for a language; it needs no model download."""
    try:
        import spacy
    except ImportError:
        raise InputError("tokenizer.kind 'words' needs spaCy: pip install spacy") from None
    try:
        return spacy.blank(language).tokenizer
    except (ImportError, AttributeError) as error:  # Japanese, say, needs a library of its own
        reason = str(error).splitlines()[0]
        raise InputError(
            f"language {language!r}: spaCy has no rules for its words ({reason})"
        ) from None


def without_surrogates(text: str) -> str:
    """Replace lone surrogates: JSON can carry them, but spaCy and SentencePiece refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_vocab(vocab: Vocab, path: Path) -> None:
    """Write a vocabulary as UTF-8, one entry per line."""
    # Bytes, since only a line feed may end a line: U+2028 and "\r" can be words.
    entries = vocab.words(range(len(vocab)))
    path.write_bytes("".join(f"{word}\n" for word in entries).encode())


def read_vocab(path: Path) -> Vocab:
    """Read the vocabulary that `write_vocab` wrote."""
    try:
        words = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start}; a vocabulary is UTF-8 text"
        ) from None
    if tuple(words[:4]) != SPECIALS or words.pop() != "":
        raise InputError(
            f"{path}: not a vocabulary: its first lines must be {' '.join(SPECIALS)}, "
            "and its last must end with a line feed"
        )
    line_of: dict[str, int] = {}
    for line, word in enumerate(words, start=1):
        if not word:
            raise InputError(f"{path}:{line}: an empty line; each line must hold one word")
        if word in line_of:
            raise InputError(
                f"{path}:{line}: {word!r} repeats line {line_of[word]}; words must be distinct"
            )
        line_of[word] = line
    return Vocab(words[len(SPECIALS) :])


_ATTACHED_LEFT = {*",.!?;:)]}…%'", "..", "...", "'s", "'re", "'ve", "'ll", "'d", "'m", "n't"}
_ATTACHED_RIGHT = {*"([{¿¡#"}
_QUOTES = {'"': '"', "'": "'", "„": '"', "“": '"', "”": '"', "‚": "‘", "‘": "‘", "»": "»", "«": "»"}
_ONE_WORD = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta")}
_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff01-\uffef]")  # Chinese and Japanese


def detokenise(words: Sequence[str], splits_hyphens: bool) -> str:
    """Join words with spaces, except where a mark attaches to its neighbour."""
    text = ""
    attached = True
    opened: set[str] = set()
    for position, word in enumerate(words):
        previous = words[position - 1] if position else ""
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
