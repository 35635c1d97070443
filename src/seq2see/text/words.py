"""Word tokenizer: a segmenter splits text into words and joins them again."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from seq2see.errors import InputError
from seq2see.text.normalising import Form, normalised
from seq2see.text.segmenters import Segmenter, segmenter
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS
from seq2see.text.vocab import Vocab


class Words:
    """Words and punctuation marks as a segmenter splits them."""

    def __init__(self, vocab: Vocab, segmenter: Segmenter, normalise: Form = "none") -> None:
        self.vocab = vocab
        self.segmenter = segmenter
        self.normalise = normalise

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        language: str,
        min_frequency: int,
        size: int | None,
        name: str = "spacy",
        normalise: Form = "none",
    ) -> "Words":
        """Count the words of the training text; those rarer than `min_frequency` become <unk>."""
        split = segmenter(name, language)
        # White space counts: spaCy makes tokens of the second of two spaces and of a no-break
        # space. They are among the 8,316 German and 6,384 English entries of Multi30k, and
        # `decode` restores them.
        normal = (normalised(text, normalise) for text in texts)
        counts = Counter(word for text in normal for word in split.learn(text))
        return cls(Vocab.build(counts, min_frequency, size), split, normalise)

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        return self.vocab.ids(self.pieces(text))

    def decode(self, ids: Sequence[int]) -> str:
        words = self.vocab.words(id for id in ids if id not in (BEGIN, END, PAD))
        return self.segmenter.join(words)

    def pieces(self, text: str) -> list[str]:
        return self.segmenter.split(normalised(text, self.normalise))

    def sample(self, text: str, generator: random.Random) -> list[int]:
        return self.encode(text)

    def piece(self, id: int) -> str:
        return self.vocab.words([id])[0]

    def save(self, path: Path) -> None:
        write_vocab(self.vocab, path)

    @classmethod
    def load(cls, path: Path, segmenter: Segmenter, normalise: Form = "none") -> "Words":
        """Read the vocabulary that `save` wrote."""
        return cls(read_vocab(path), segmenter, normalise)


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
