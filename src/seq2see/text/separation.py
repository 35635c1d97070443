"""Separation of held-out sentences from those that a model or its parent was trained on."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2see.errors import InputError
from seq2see.text.history import (
    Fingerprints,
    Flags,
    History,
    all_seen,
    among,
    empty,
    fingerprints,
    in_text_order,
    keys,
    other_data,
    shared,
)
from seq2see.text.lines import Pair
from seq2see.text.parallel import Mixture, Parallel, Streamed, filled

NAMES = {"val": "val", "test": "test/test"}  # of sets that were held out, in a history
BLOCK = 1 << 14  # pairs in memory at a time


class Share(NamedTuple):
    """One of several corpora: its training pairs, and how often an epoch sees each."""

    pairs: int
    weight: float


@dataclass(frozen=True)
class Corpus:
    """Training, validation and test sets of a run."""

    train: Streamed
    val: Parallel
    tests: dict[str, Parallel]
    history: History = field(compare=False)  # of the pairs before they were joined
    notes: Sequence[str] = field(default=(), compare=False)  # for the user, on how it was read
    left_out: int = 0  # training pairs that share a sentence with a held-out set
    overlap: dict[str, int] = field(default_factory=dict)  # the same, by set
    shares: Sequence[Share] = field(default=(), compare=False)  # of the corpora in train
    # Keeps a record of the reading; None if there is one, or no place for it.
    keep: Callable[[bool], None] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Scan:
    """A training set in fingerprints, from one reading of it."""

    prints: Fingerprints  # (N, 2) of the pairs with text on both sides
    order: Fingerprints  # (N,), see `in_text_order`
    counts: Sequence[int]  # pairs of each corpus in the mixture
    dropped: int  # pairs with an empty side

    @classmethod
    def of(cls, mixture: Mixture) -> "Scan":
        prints, order = [empty(0, 2)], [empty(0)]
        counts = []
        dropped = 0
        for part in mixture.parts:
            counts.append(0)
            for block in _blocks(part):
                full = list(filled(block))
                dropped += len(block) - len(full)
                counts[-1] += len(full)
                prints.append(fingerprints(full))
                order.append(in_text_order(full))
        return cls(np.concatenate(prints), np.concatenate(order), counts, dropped)


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    stream = iter(pairs)
    while block := list(islice(stream, BLOCK)):
        yield block


def split_again(
    prints: Fingerprints, history: History, names: Sequence[str]
) -> npt.NDArray[np.uint8]:
    """Find the sets that a run has held out before: the number of each pair's, 0 for training."""
    before = [history.held_out.get(NAMES[name], empty(0, 2)) for name in names]
    left = [Counter(keys(part).tolist()) for part in before]
    own = keys(prints)
    set_of = np.zeros(len(prints), dtype=np.uint8)
    for line in np.flatnonzero(among(own, np.concatenate([keys(part) for part in before]))):
        key = int(own[line])
        place = next((place for place, counts in enumerate(left, start=1) if counts[key]), 0)
        if place:
            set_of[line] = place
            left[place - 1][key] -= 1
    if missing := sum(counts.total() for counts in left):
        count = len(history.train) + sum(map(len, before))
        raise other_data(history, history.missing(prints) + missing, count)
    return set_of


def leaks(prints: Fingerprints, held_out: dict[str, Fingerprints], history: History) -> Flags:
    """The training pairs that share a sentence with a held-out set.

    A run that was begun by an earlier version keeps those that its history shows.
    """
    new = ~among(keys(prints), keys(history.train))
    flags: Flags = new & shared(prints, list(held_out.values()))
    return flags


def overlaps(prints: Fingerprints, held_out: dict[str, Fingerprints]) -> dict[str, int]:
    """Count the pairs that share a sentence with each held-out set; a pair may with several."""
    names = sorted(held_out, key=lambda name: name.removeprefix("test/"))
    counts = {name: int(shared(prints, [held_out[name]]).sum()) for name in names}
    return {name.removeprefix("test/"): count for name, count in counts.items() if count}


def overlap_note(overlap: dict[str, int], left_out: int, count: int) -> str:
    """One line on the training pairs that share a sentence with held-out sets; all are refused."""
    sets = [f"{name} ({pairs:,})" for name, pairs in overlap.items()]
    shares = f"share a sentence with {' or '.join(sets)}"
    if left_out == count:
        rule = 'data.overlap = "keep" trains on such pairs'
        raise InputError(f"data.train: all {count:,} pairs {shares}; {rule}")
    kept = 'data.overlap = "keep" keeps them'
    return f"{left_out:,} of {count:,} training pairs {shares} and are left out; {kept}"


def repetitions(prints: Fingerprints) -> list[str]:
    """Count duplicate and untranslated training pairs, in one line for the user if there are any.

    Case and spacing make no difference.
    """
    ordered = np.sort(keys(prints))
    duplicates = int(np.sum(ordered[1:] == ordered[:-1]))
    untranslated = int(np.sum(prints[:, 0] == prints[:, 1]))
    counts = {"duplicates": duplicates, "untranslated (source = target)": untranslated}
    parts = [f"{name}: {count:,}" for name, count in counts.items() if count]
    return [" · ".join([f"{len(prints):,} training pairs, all kept", *parts])] if parts else []


def unseen(held_out: Parallel, history: History) -> Parallel:
    """Leave out the pairs that an ancestor was trained on."""
    if not len(history.ancestors):
        return held_out
    seen = history.saw(fingerprints(held_out.pairs))
    if not seen.any():
        return held_out
    if seen.all():
        raise all_seen(history, len(seen), held_out.name)
    kept = compress(held_out.pairs, ~seen)
    return Parallel.of(held_out.name, kept, held_out.dropped, seen=int(seen.sum()))
