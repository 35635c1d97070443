"""Sentence pairs of a corpus and its splits."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seq2see.text.lines import Pair


def normalised(text: str) -> str:
    """Fold case and spacing: sentences that differ in nothing else count as equal."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs of one split, in the order of the file."""

    name: str  # "train", "val", "test_2016_flickr", …
    pairs: list[Pair]
    digest: str  # SHA-256 of the text of both sides
    dropped: int = 0  # pairs left out because a side was empty
    seen: int = 0  # pairs left out because the model to start from was trained on them

    @classmethod
    def of(cls, name: str, pairs: Iterable[Pair], dropped: int = 0, seen: int = 0) -> "Parallel":
        """Drop pairs with an empty side, and hash the others."""
        pairs = list(pairs)
        kept = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
        digest = hashlib.sha256()
        for pair in kept:
            digest.update("".join(f"{text}\n" for text in pair).encode())  # no text has a line feed
        return cls(name, kept, digest.hexdigest(), dropped + len(pairs) - len(kept), seen)


class Splits(NamedTuple):
    """Training, validation and test sets as they were read."""

    train: Parallel
    val: Parallel
    tests: dict[str, Parallel]
    notes: Sequence[str] = ()  # remarks for the user on how they were read
