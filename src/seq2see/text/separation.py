"""Separation of held-out sentences from those that a model or its parent was trained on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from seq2see.errors import InputError
from seq2see.text.history import (
    Fingerprints,
    History,
    all_seen,
    empty,
    fingerprints,
    keys,
    other_data,
    shared,
)
from seq2see.text.lines import Pair
from seq2see.text.parallel import Parallel, Splits

NAMES = {"val": "val", "test": "test/test"}  # of sets that were held out, in a history


@dataclass(frozen=True)
class Corpus:
    """Training, validation and test sets of a run."""

    train: Parallel
    val: Parallel
    tests: dict[str, Parallel]
    history: History = field(compare=False)  # of the pairs before they were joined
    notes: Sequence[str] = field(default=(), compare=False)  # for the user, on how it was read
    left_out: int = 0  # training pairs that share a sentence with a held-out set


def known(pairs: Sequence[Pair], history: History) -> list[bool]:
    """Whether an ancestor was trained on a sentence of each pair."""
    flags: list[bool] = history.saw(fingerprints(pairs)).tolist()
    return flags


def split_again(pairs: Sequence[Pair], history: History, names: Sequence[str]) -> list[list[Pair]]:
    """Split off the sets that a run has held out before; the rest comes first."""
    prints = fingerprints(pairs)
    before = [history.held_out.get(NAMES[name], empty(0, 2)) for name in names]
    left = [Counter(keys(part).tolist()) for part in before]
    splits: list[list[Pair]] = [[] for _ in range(len(names) + 1)]
    for pair, key in zip(pairs, keys(prints).tolist(), strict=True):
        place = next((place for place, counts in enumerate(left, start=1) if counts[key]), 0)
        splits[place].append(pair)
        if place:
            left[place - 1][key] -= 1
    if missing := sum(counts.total() for counts in left):
        count = len(history.train) + sum(map(len, before))
        raise other_data(history, history.missing(prints) + missing, count)
    return splits


def separated(splits: Splits, history: History, overlap: str = "drop") -> Corpus:
    """Leave out held-out pairs that an ancestor was trained on; add the history of the corpus.

    Training pairs that share a sentence with a held-out set are left out, unless overlap is "keep"
    or the run itself, begun by an earlier version, was trained on them already.
    """
    train, val, tests, notes = splits
    val = _unseen(val, history)
    tests = {name: _unseen(test, history) for name, test in tests.items()}
    held_out = {f"test/{name}": fingerprints(test.pairs) for name, test in tests.items()}
    held_out["val"] = fingerprints(val.pairs)
    prints = fingerprints(train.pairs)
    leaks = np.zeros(len(prints), dtype=np.bool_)
    if overlap == "drop":
        new = ~np.isin(keys(prints), keys(history.train))
        leaks = new & shared(prints, list(held_out.values()))
    if leaks.any():
        notes = [*notes, _overlap(prints[leaks], len(prints), held_out)]
        train = Parallel.of("train", compress(train.pairs, ~leaks), train.dropped)
    own = replace(history, train=prints[~leaks], held_out=held_out)
    return Corpus(train, val, tests, own, notes, int(leaks.sum()))


def _overlap(leaks: Fingerprints, count: int, held_out: dict[str, Fingerprints]) -> str:
    """One line on the training pairs that share a sentence with held-out sets; all are refused."""
    by_set = {name.removeprefix("test/"): shared(leaks, [held_out[name]]) for name in held_out}
    sets = [f"{name} ({flags.sum():,})" for name, flags in sorted(by_set.items()) if flags.any()]
    shares = f"share a sentence with {' or '.join(sets)}"
    if len(leaks) == count:
        rule = 'data.overlap = "keep" trains on such pairs'
        raise InputError(f"data.train: all {count:,} pairs {shares}; {rule}")
    kept = 'data.overlap = "keep" keeps them'
    return f"{len(leaks):,} of {count:,} training pairs {shares} and are left out; {kept}"


def repetitions(prints: Fingerprints) -> list[str]:
    """Count duplicate and untranslated training pairs, in one line for the user if there are any.

    Case and spacing make no difference.
    """
    duplicates = len(prints) - len(np.unique(keys(prints)))
    untranslated = int(np.sum(prints[:, 0] == prints[:, 1]))
    counts = {"duplicates": duplicates, "untranslated (source = target)": untranslated}
    parts = [f"{name}: {count:,}" for name, count in counts.items() if count]
    return [" · ".join([f"{len(prints):,} training pairs, all kept", *parts])] if parts else []


def _unseen(held_out: Parallel, history: History) -> Parallel:
    if not len(history.ancestors):
        return held_out
    seen = history.saw(fingerprints(held_out.pairs))
    if not seen.any():
        return held_out
    if seen.all():
        raise all_seen(history, len(seen), held_out.name)
    kept = compress(held_out.pairs, ~seen)
    return Parallel.of(held_out.name, kept, held_out.dropped, seen=int(seen.sum()))
