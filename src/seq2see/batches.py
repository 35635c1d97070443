"""Examples and batches: similar lengths share a batch, in a new order each epoch."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.recipe.schema import TrainConfig
from seq2see.text.specials import BEGIN, END, PAD

Ids = list[int]
IdPair = tuple[Ids, Ids]
Lengths = NDArray[np.int64]  # (N, 2): tokens on the source and the target side of each example

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


class TextExamples:
    """Examples of text, held in memory.

    A shifted target is predicted from its own beginning (teacher forcing); the other kind holds
    the labels of what is read, PAD where there is none.
    """

    def __init__(self, pairs: Sequence[IdPair], shifted: bool = True) -> None:
        self.pairs = pairs
        self.shifted = shifted
        sizes = [(len(source) + 1, len(target) + shifted) for source, target in pairs]
        self.lengths: Lengths = np.array(sizes, dtype=np.int64).reshape(-1, 2)

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


def by_tokens(lengths: Lengths, tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Cut a corpus into batches of similar lengths, with at most `tokens` on the longer side.

    Padding counts. Lines of equal lengths share batches with others each epoch.
    """
    shuffle = random.Random(f"batches/{seed}/{epoch}")
    sizes: list[tuple[int, int]] = [(source, target) for source, target in lengths.tolist()]
    lines = list(range(len(sizes)))
    shuffle.shuffle(lines)

    def place(line: int) -> tuple[int, int]:
        source, target = sizes[line]
        # Source lengths rise and fall in turn, so that a batch across two target lengths is even.
        return target, -source if target % 2 else source

    lines.sort(key=place)
    batches: list[list[int]] = []
    longest = (0, 0)  # of the open batch, per side
    real = 0
    for line in lines:
        size = len(batches[-1]) + 1 if batches else 1
        wider = max(longest[0], sizes[line][0]), max(longest[1], sizes[line][1])
        filled = real + sum(sizes[line])
        over = max(wider) * size > tokens
        # A batch of half the budget is better than one that is mostly padding on a side.
        padded = filled < (1 - MOST_PADDING) * sum(wider) * size
        uneven = padded and max(longest) * size > tokens / 2
        if not batches or over or uneven:
            batches.append([])
            wider, filled = sizes[line], sum(sizes[line])
        batches[-1].append(line)
        longest, real = wider, filled
    shuffle.shuffle(batches)
    return batches


def by_sentences(
    lengths: Lengths, sentences: int, accumulate: int, seed: int, epoch: int
) -> list[list[int]]:
    """Cut a shuffled corpus into batches of a fixed number of examples.

    The batches of one update share out their examples by length: less padding, the same gradient.
    """
    longer = lengths.max(axis=1).tolist()
    lines = list(range(len(longer)))
    random.Random(f"batches/{seed}/{epoch}").shuffle(lines)
    batches = []
    for start in range(0, len(lines), sentences * accumulate):
        update = lines[start : start + sentences * accumulate]
        update.sort(key=lambda line: longer[line])
        batches += [update[first : first + sentences] for first in range(0, len(update), sentences)]
    return batches


def epoch_batches(lengths: Lengths, config: TrainConfig, epoch: int) -> list[list[int]]:
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
