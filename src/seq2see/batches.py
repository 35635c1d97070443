"""Examples and batches: similar lengths share a batch, in a new order each epoch."""

import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.recipe.schema import TrainConfig
from seq2see.text.specials import BEGIN, END, PAD

Ids = list[int]
IdPair = tuple[Ids, Ids]
# (N, 2): tokens on the source and the target side of each example
Lengths = NDArray[np.signedinteger[Any]]

MOST_PADDING = 0.05  # of a batch that is at least half full


class Example(NamedTuple):
    """One line of a corpus as ids, without <s> and </s>."""

    source: Ids
    target: Ids

    @property
    def length(self) -> int:
        """Tokens on the longer side."""
        return max(len(self.source), len(self.target))


@dataclass(frozen=True)
class Batch:
    """Padded ids of several examples; `lines` are their lines in the corpus."""

    source: Tensor  # (B, S): w1 … wn </s>
    target_in: Tensor  # (B, T): <s> w1 … wn
    target_out: Tensor  # (B, T): w1 … wn </s>
    lines: list[int]

    def __repr__(self) -> str:
        sides = f"{tuple(self.source.shape)} → {tuple(self.target_out.shape)}"
        return f"Batch({len(self.lines)} lines, {sides})"

    @property
    def source_tokens(self) -> int:
        return int((self.source != PAD).sum())

    @property
    def targets(self) -> Tensor:
        return self.target_out

    @property
    def target_tokens(self) -> int:
        return int((self.target_out != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        target_in, target_out = self.target_in.to(device), self.target_out.to(device)
        return Batch(self.source.to(device), target_in, target_out, self.lines)


class AnyBatch(Protocol):
    """A batch as training sees it, whatever its task."""

    @property
    def target_tokens(self) -> int: ...  # number of targets that the loss is summed over
    def to(self, device: torch.device) -> Any: ...


class Examples(Protocol):
    """The examples of an epoch, by line.

    Order and batches are computed from the lengths alone, so the examples need not be in memory.
    """

    @property
    def lengths(self) -> Lengths: ...  # as they count in a batch
    def batch(self, lines: Sequence[int]) -> AnyBatch: ...


def sizes_of(pairs: Sequence[IdPair]) -> Lengths:
    """Count the tokens of both sides of each pair: (N, 2)."""
    sizes = [(len(source), len(target)) for source, target in pairs]
    return np.array(sizes, dtype=np.int32).reshape(-1, 2)


class Chosen(Sequence[IdPair]):
    """Some lines of other pairs, which may be in files."""

    def __init__(self, pairs: Sequence[IdPair], lines: NDArray[np.integer[Any]]) -> None:
        self._pairs = pairs
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> IdPair: ...
    @overload
    def __getitem__(self, index: slice) -> list[IdPair]: ...
    def __getitem__(self, index: int | slice) -> IdPair | list[IdPair]:
        if isinstance(index, slice):
            return [self._pairs[line] for line in self._lines[index].tolist()]
        return self._pairs[int(self._lines[index])]


class TextExamples:
    """Examples of text, in memory or in files.

    A shifted target is predicted from its own beginning (teacher forcing); the other kind holds
    the labels of what is read, PAD where there is none.
    """

    def __init__(
        self, pairs: Sequence[IdPair], shifted: bool = True, sizes: Lengths | None = None
    ) -> None:
        """Hold pairs; their sizes in tokens are counted unless they are known."""
        self.pairs = pairs
        self.shifted = shifted
        sizes = sizes_of(pairs) if sizes is None else sizes
        self.lengths: Lengths = sizes + np.array([1, shifted], dtype=sizes.dtype)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, line: int) -> Example:
        return Example(*self.pairs[line])

    def batch(self, lines: Sequence[int]) -> Batch:
        return (collate if self.shifted else collate_labels)(self.pairs, lines)


def pad(rows: Sequence[Ids]) -> Tensor:
    """Fill rows of ids up to the longest with padding."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])  # (B, S)


def collate(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
    """Pad the pairs of some lines into one batch; the only place where the target is shifted."""
    return Batch(
        source=pad([pairs[line][0] + [END] for line in lines]),
        target_in=pad([[BEGIN, *pairs[line][1]] for line in lines]),
        target_out=pad([[*pairs[line][1], END] for line in lines]),
        lines=list(lines),
    )


def collate_labels(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
    """Pad sources and their labels, which are not shifted and PAD where there is none."""
    source = pad([[*pairs[line][0], END] for line in lines])
    labels = pad([pairs[line][1] for line in lines])
    return Batch(source, labels, labels, list(lines))


class Batches(Sequence[list[int]]):
    """The batches of an epoch in the order of training, as arrays: 8 bytes for each line."""

    def __init__(
        self, lines: NDArray[np.int32], bounds: Sequence[int], order: Sequence[int]
    ) -> None:
        """Cut the lines at the bounds, which start with 0; `order` puts these batches in turn."""
        self._lines = lines
        self._bounds = bounds
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> list[int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[int]]: ...
    def __getitem__(self, index: int | slice) -> list[int] | list[list[int]]:
        if isinstance(index, slice):
            return [self._batch(place) for place in self._order[index]]
        return self._batch(self._order[index])

    def __iter__(self) -> Iterator[list[int]]:
        return map(self._batch, self._order)

    def _batch(self, place: int) -> list[int]:
        lines: list[int] = self._lines[self._bounds[place] : self._bounds[place + 1]].tolist()
        return lines


def _shuffled(count: int, shuffle: random.Random) -> NDArray[np.int32]:
    """Shuffle the numbers below `count`."""
    numbers = array("i", range(count))  # 4 bytes each; a list would hold Python objects
    shuffle.shuffle(numbers)
    return np.array(numbers, dtype=np.int32)


def mixed(
    lines: NDArray[np.int32], shares: Sequence[tuple[int, float]], seed: int, epoch: int
) -> NDArray[np.int32]:
    """Repeat and draw the lines of an epoch; shares are the sizes and weights of the corpora.

    A weight of 2.5 takes each line twice, and half of them once more.
    """
    ends = np.cumsum([size for size, _ in shares])
    parts = np.split(lines, np.searchsorted(lines, ends)[:-1])
    taken = []
    for number, (part, (_, weight)) in enumerate(zip(parts, shares, strict=True)):
        order = _shuffled(len(part), random.Random(f"mix/{seed}/{epoch}/{number}"))
        taken.append(np.repeat(part, int(weight)))
        taken.append(part[np.sort(order[: round(weight % 1 * len(part))])])
    return np.concatenate(taken)


def by_tokens(lengths: Lengths, tokens: int, seed: int, epoch: int) -> Batches:
    """Cut a corpus into batches of similar lengths, with at most `tokens` on the longer side.

    Padding counts. Lines of equal lengths share batches with others each epoch.
    """
    shuffle = random.Random(f"batches/{seed}/{epoch}")
    lines = _shuffled(len(lengths), shuffle)
    source, target = lengths[lines].T
    # Source lengths rise and fall in turn, so that a batch across two target lengths is even.
    rising = np.where(target % 2, -source, source)
    lines = lines[np.lexsort((rising, target))]  # stable: equal lengths stay shuffled
    bounds = _bounds(lengths[lines], tokens)
    return Batches(lines, bounds, _shuffled(len(bounds) - 1, shuffle).tolist())


def _bounds(lengths: Lengths, tokens: int) -> Sequence[int]:
    """Cut sorted lengths into batches: where each begins, and the end of the last."""
    starts = array("q", [0])
    while starts[-1] < len(lengths):
        starts.append(starts[-1] + _first_batch(lengths[starts[-1] :], tokens))
    return starts


def _first_batch(lengths: Lengths, tokens: int) -> int:
    """Count the lines of the first batch: one, and those that can join it."""
    most = tokens // max(1, int(lengths[0].max()))
    lengths = lengths[: most + 1].astype(np.int64)
    size = np.arange(1, len(lengths) + 1)
    widest = np.maximum.accumulate(lengths)
    longest = widest.max(axis=1)
    over = longest * size > tokens
    # A batch of half the budget is better than one that is mostly padding on a side.
    padded = lengths.sum(axis=1).cumsum() < (1 - MOST_PADDING) * widest.sum(axis=1) * size
    half_full = longest[:-1] * size[1:] > tokens / 2
    ends = over[1:] | (padded[1:] & half_full)
    return 1 + int(ends.argmax()) if ends.any() else len(lengths)


def by_sentences(
    lengths: Lengths, sentences: int, accumulate: int, seed: int, epoch: int
) -> Batches:
    """Cut a shuffled corpus into batches of a fixed number of examples.

    The batches of one update share out their examples by length: less padding, the same gradient.
    """
    lines = _shuffled(len(lengths), random.Random(f"batches/{seed}/{epoch}"))
    updates = np.arange(len(lines)) // (sentences * accumulate)
    lines = lines[np.lexsort((lengths[lines].max(axis=1, initial=0), updates))]
    starts = range(0, len(lines), sentences)
    return Batches(lines, [*starts, len(lines)], range(len(starts)))


def epoch_batches(lengths: Lengths, config: TrainConfig, epoch: int) -> Batches:
    """Compute the batches of an epoch, as lines of the corpus, in the order of training."""
    if config.batch_sentences:
        size, accumulate = config.batch_sentences, config.accumulate
        return by_sentences(lengths, size, accumulate, config.seed, epoch)
    return by_tokens(lengths, config.batch_tokens or 4096, config.seed, epoch)


def padding_share(lengths: Lengths, batches: Sequence[Sequence[int]]) -> float:
    """The share of padding among all positions, source and target."""
    padded = sum(int(lengths[lines].max(axis=0).sum()) * len(lines) for lines in batches)
    return 1 - int(lengths.sum()) / padded if padded else 0.0


def spread(size: int, count: int) -> list[int]:
    """Choose `count` of `size` lines at equal distances, or all if there are fewer."""
    count = min(count, size)
    return [(2 * index + 1) * size // (2 * count) for index in range(count)]
