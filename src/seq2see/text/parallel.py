"""Sentence pairs of a corpus and its splits."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from seq2see.errors import InputError
from seq2see.text.lines import Pair

if TYPE_CHECKING:  # numpy is slow to import
    import numpy as np
    import numpy.typing as npt


def normalised(text: str) -> str:
    """Fold case and spacing: sentences that differ in nothing else count as equal."""
    return " ".join(text.split()).casefold()


class Pairs(Protocol):
    """Pairs that can be read again and again, in memory or not."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Pair]: ...


def filled(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield the pairs with text on both sides."""
    return (pair for pair in pairs if pair[0].strip() and pair[1].strip())


@dataclass(frozen=True)
class Selection:
    """Some pairs of a stream; none of them is kept in memory."""

    stream: Iterable[Pair]
    chosen: "npt.NDArray[np.bool_]"  # of the pairs with text on both sides
    name: str  # of the files

    def __len__(self) -> int:
        return int(self.chosen.sum())

    def __iter__(self) -> Iterator[Pair]:
        count = 0
        for pair in compress(filled(self.stream), self.chosen.tobytes()):
            count += 1
            yield pair
        if count != len(self):
            raise InputError(f"{self.name}: changed while it was read; start again")


@dataclass(frozen=True)
class Joined:
    """Pairs joined to longer ones."""

    pairs: Pairs
    count: int

    def __len__(self) -> int:
        return -(-len(self.pairs) // self.count)

    def __iter__(self) -> Iterator[Pair]:
        return joined(self.pairs, self.count)


def joined(pairs: Iterable[Pair], count: int) -> Iterator[Pair]:
    """Join every `count` consecutive pairs into one long pair; the last may be shorter."""
    stream = iter(pairs)
    while group := list(islice(stream, count)):
        sources, targets = zip(*group, strict=True)
        yield " ".join(sources), " ".join(targets)


class Digest:
    """SHA-256 of the text of both sides, pair by pair."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, pair: Pair) -> None:
        self._hash.update(f"{pair[0]}\n{pair[1]}\n".encode())  # no text has a line feed

    def __str__(self) -> str:
        return self._hash.hexdigest()

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> str:
        digest = cls()
        for pair in pairs:
            digest.add(pair)
        return str(digest)


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs of a held-out set, in the order of the file."""

    name: str  # "val", "test_2016_flickr", …
    pairs: list[Pair]
    digest: str  # SHA-256 of the text of both sides
    dropped: int = 0  # pairs left out because a side was empty
    seen: int = 0  # pairs left out because the model to start from was trained on them

    @classmethod
    def of(cls, name: str, pairs: Iterable[Pair], dropped: int = 0, seen: int = 0) -> "Parallel":
        """Hold pairs in memory without those that have an empty side, and hash them."""
        pairs = list(pairs)
        kept = list(filled(pairs))
        return cls(name, kept, Digest.of(kept), dropped + len(pairs) - len(kept), seen)


@dataclass(frozen=True)
class Streamed:
    """Sentence pairs of a training set, which are read again where they are needed."""

    name: str
    pairs: Pairs = field(compare=False)
    digest: str  # SHA-256 of the text of both sides
    dropped: int = 0  # pairs left out because a side was empty
    seen: int = 0  # none: a training set may hold what its parent has seen


Part = Parallel | Streamed


@dataclass(frozen=True)
class Mixture:
    """Pairs of one or several corpora, one after another, read anew each time."""

    parts: Sequence[Iterable[Pair]]
    weights: Sequence[float] = (1.0,)  # how often an epoch sees the pairs of each

    def __iter__(self) -> Iterator[Pair]:
        return chain.from_iterable(self.parts)


class Splits(NamedTuple):
    """Training, validation and test sets of the files that a recipe names."""

    name: str  # of the training files
    train: Mixture
    val: Parallel | None
    tests: dict[str, Parallel]
    notes: Callable[[], Iterable[str]] = tuple  # remarks on the files, once they are read
    files: Sequence[Path] = ()  # of all sets
