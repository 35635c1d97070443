"""Batches: pairs of about equal length together, padded little, shuffled anew each epoch."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2see.recipe.schema import TrainConfig
from seq2see.text.vocab import BEGIN, END, PAD

Ids = list[int]
IdPair = tuple[Ids, Ids]
Collate = Callable[[Sequence[IdPair], Sequence[int]], "Batch"]

MOST_PADDING = 0.05  # of a batch that is at least half full


@dataclass(frozen=True)
class Batch:
    """Some sentence pairs as padded ids; `lines` says which pairs of the corpus they are."""

    source: Tensor  # (B, S): w1 … wn </s>; of pictures their pixels (B, C, H, W)
    target_in: Tensor  # (B, T): <s> w1 … wn
    target_out: Tensor  # (B, T): w1 … wn </s>
    lines: list[int]

    @property
    def source_tokens(self) -> int:
        return int((self.source != PAD).sum())

    @property
    def target_tokens(self) -> int:
        return int((self.target_out != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        return Batch(
            self.source.to(device),
            self.target_in.to(device),
            self.target_out.to(device),
            self.lines,
        )


def pad(rows: Sequence[Ids]) -> Tensor:
    """Rows of ids, filled up with padding to the longest."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])  # (B, S)


def collate(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
    """Pad the given lines into one batch; the only place where the target is shifted."""
    return Batch(
        source=pad([pairs[line][0] + [END] for line in lines]),
        target_in=pad([[BEGIN, *pairs[line][1]] for line in lines]),
        target_out=pad([[*pairs[line][1], END] for line in lines]),
        lines=list(lines),
    )


def collate_answers(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
    """A batch of which the source is read and the target is what to say of it: not shifted, PAD where nothing is."""
    answers = pad([pairs[line][1] for line in lines])
    return Batch(pad([[*pairs[line][0], END] for line in lines]), answers, answers, list(lines))


def by_tokens(pairs: Sequence[IdPair], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Cut the corpus into batches of near-equal lengths whose longer side has at most `tokens` with padding."""
    shuffle = random.Random(f"batches/{seed}/{epoch}")
    lines = list(range(len(pairs)))
    shuffle.shuffle(lines)  # the sort is stable: pairs of equal lengths meet others each epoch

    def place(line: int) -> tuple[int, int]:
        source, target = len(pairs[line][0]), len(pairs[line][1])
        # Rising and falling source lengths in turn, so that a batch across two target lengths stays even.
        return target, source if target % 2 else -source

    lines.sort(key=place)
    batches: list[list[int]] = []
    longest = (0, 0)  # of the open batch, per side
    real = 0
    for line in lines:
        lengths = len(pairs[line][0]) + 1, len(pairs[line][1]) + 1
        size = len(batches[-1]) + 1 if batches else 1
        wider = max(longest[0], lengths[0]), max(longest[1], lengths[1])
        over = max(wider) * size > tokens
        # Better a batch of half the budget than one that is mostly padding on a side.
        uneven = (
            real + sum(lengths) < (1 - MOST_PADDING) * sum(wider) * size
            and max(longest) * size > tokens / 2
        )
        if not batches or over or uneven:
            batches.append([])
            wider, real = lengths, 0
        batches[-1].append(line)
        longest, real = wider, real + sum(lengths)
    shuffle.shuffle(batches)
    return batches


def by_sentences(
    pairs: Sequence[IdPair], sentences: int, accumulate: int, seed: int, epoch: int
) -> list[list[int]]:
    """Cut a shuffled corpus into batches of a fixed number of pairs, whatever their length.

    The batches that make one update together share their pairs out by length: less padding, the same gradient.
    """
    lines = list(range(len(pairs)))
    random.Random(f"batches/{seed}/{epoch}").shuffle(lines)
    batches = []
    for start in range(0, len(lines), sentences * accumulate):
        update = lines[start : start + sentences * accumulate]
        update.sort(key=lambda line: max(map(len, pairs[line])))
        batches += [update[first : first + sentences] for first in range(0, len(update), sentences)]
    return batches


def plan(pairs: Sequence[IdPair], config: TrainConfig, epoch: int) -> list[list[int]]:
    """The batches of an epoch, as lines of the corpus, in the order a recipe trains on them."""
    if config.batch_sentences:
        return by_sentences(pairs, config.batch_sentences, config.accumulate, config.seed, epoch)
    return by_tokens(pairs, config.batch_tokens or 4096, config.seed, epoch)


def padding_share(pairs: Sequence[IdPair], batches: Sequence[Sequence[int]]) -> float:
    """The share of all places, source and target, that hold padding."""
    real = padded = 0
    for batch in batches:
        for side in (0, 1):
            lengths = [len(pairs[line][side]) + 1 for line in batch]
            real += sum(lengths)
            padded += max(lengths) * len(lengths)
    return 1 - real / padded if padded else 0.0
