"""The split of a corpus, decided on fingerprints: what is trained on and what is held out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.history import Fingerprints, Flags, History, fingerprints
from seq2see.text.hold_out import default_size, hold_out
from seq2see.text.lines import Pair
from seq2see.text.parallel import (
    Digest,
    Joined,
    Mixture,
    Pairs,
    Parallel,
    Selection,
    Splits,
    Streamed,
    filled,
    joined,
)
from seq2see.text.progress import Progress
from seq2see.text.record import Facts, Reading
from seq2see.text.separation import (
    NAMES,
    Corpus,
    Scan,
    Share,
    leaks,
    overlap_note,
    overlaps,
    repetitions,
    split_again,
    unseen,
)


@dataclass(frozen=True)
class Division:
    """A training set whose held-out sets are chosen, and all that is to be left out."""

    train: Mixture
    scan: Scan
    missing: list[str]  # sets that are held out of the training set
    set_of: npt.NDArray[np.uint8]  # 0, or the number of the held-out set of each pair
    chosen: Flags  # pairs to train on
    left_out: int
    overlap: dict[str, int]  # the same, by held-out set
    notes: list[str]

    @classmethod
    def of(
        cls, splits: Splits, config: DataConfig, history: History, progress: Progress
    ) -> "Division":
        """Read the training set once, and decide."""
        scan = Scan.of(splits.train)
        if not len(scan.prints):
            raise InputError(f"{splits.name}: no pair has text on both sides")
        notes = list(splits.notes())
        sets = (("val", splits.val), ("test", splits.tests))
        missing = [name for name, part in sets if not part]
        set_of = np.zeros(len(scan.prints), dtype=np.uint8)
        if missing and config.hold_out != 0:
            count = len(scan.prints)
            progress(f"holding out {' and '.join(missing)} from {count:,} pairs", None)
            set_of = _held_out(scan, missing, config, history, notes)
        elif splits.val is None:
            raise InputError("data.hold_out = 0, but there is no validation set; give data.val")
        else:
            missing = []
        chosen = set_of == 0
        if config.limit is not None:
            chosen &= np.cumsum(chosen) <= config.limit
        held_out = fingerprints_of(splits)
        for number, name in enumerate(missing, start=1):
            held_out[NAMES[name]] = scan.prints[set_of == number]
        left_out = np.zeros_like(chosen)
        if config.overlap == "drop" and not history.unknown:
            left_out = chosen & leaks(scan.prints, held_out, history)
        count = int(left_out.sum())
        overlap = overlaps(scan.prints[left_out], held_out)
        if count:
            notes.append(overlap_note(overlap, count, int(chosen.sum())))
            chosen &= ~left_out
        return cls(splits.train, scan, missing, set_of, chosen, count, overlap, notes)

    def reading(self, join: int) -> Reading:
        """Read the training set once more, for its checksum and the texts to hold out."""
        held_out: dict[str, list[Pair]] = {name: [] for name in self.missing}
        training = self._training(list(held_out.values()))
        digest = Digest.of(training if join == 1 else joined(training, join))
        prints = self.scan.prints[self.chosen]
        notes = list(dict.fromkeys([*self.notes, *repetitions(prints)]))
        counts, dropped = list(self.scan.counts), self.scan.dropped
        facts = Facts(digest, counts, dropped, self.left_out, self.overlap, held_out, notes)
        # Reading may end after the last one.
        last = int(np.flatnonzero(self.chosen)[-1]) + 1
        return Reading(facts, prints, self.chosen[:last])

    def _training(self, held_out: list[list[Pair]]) -> Iterator[Pair]:
        """Yield the pairs to train on, and collect those that are held out."""
        numbers = zip(self.chosen.tobytes(), self.set_of.tobytes(), strict=True)
        for pair, (kept, number) in zip(filled(self.train), numbers, strict=True):
            if kept:
                yield pair
            elif number:
                held_out[number - 1].append(pair)


def without_seen(splits: Splits, history: History) -> Splits:
    """Leave out of val and tests what an ancestor was trained on."""
    val = None if splits.val is None else unseen(splits.val, history)
    tests = {name: unseen(test, history) for name, test in splits.tests.items()}
    return splits._replace(val=val, tests=tests)


def corpus_of(splits: Splits, config: DataConfig, history: History, reading: Reading) -> Corpus:
    """The sets of a corpus whose training set has been read."""
    facts = reading.facts
    sets = {name: Parallel.of(name, pairs) for name, pairs in facts.held_out.items()}
    splits = splits._replace(val=sets.pop("val", splits.val), tests=splits.tests | sets)
    assert splits.val is not None  # else it was held out or refused
    own = replace(history, train=reading.prints, held_out=fingerprints_of(splits))
    pairs: Pairs = Selection(splits.train, reading.chosen, splits.name)
    if config.join > 1:
        pairs = Joined(pairs, config.join)
    train = Streamed("train", pairs, facts.digest, facts.dropped)
    val = _joined(splits.val, config)
    tests = {name: _joined(test, config) for name, test in splits.tests.items()}
    shares = _shares(splits.train, reading)
    return Corpus(train, val, tests, own, facts.notes, facts.left_out, facts.overlap, shares)


def _shares(train: Mixture, reading: Reading) -> list[Share]:
    """The training pairs of each corpus in the mixture."""
    ends = np.cumsum(reading.facts.counts)[:-1]
    chosen = [int(part.sum()) for part in np.split(reading.chosen, ends)]
    return [Share(count, weight) for count, weight in zip(chosen, train.weights, strict=True)]


def _joined(part: Parallel, config: DataConfig) -> Parallel:
    if config.join == 1:
        return part
    return Parallel.of(part.name, joined(part.pairs, config.join), part.dropped, part.seen)


def fingerprints_of(splits: Splits) -> dict[str, Fingerprints]:
    """The fingerprints of all held-out sets, by their names in a history."""
    held_out = {f"test/{name}": fingerprints(test.pairs) for name, test in splits.tests.items()}
    if splits.val is not None:
        held_out["val"] = fingerprints(splits.val.pairs)
    return held_out


def _held_out(
    scan: Scan, names: list[str], config: DataConfig, history: History, notes: list[str]
) -> npt.NDArray[np.uint8]:
    """Choose the sets that the recipe does not give."""
    if history.held_out:
        return split_again(scan.prints, history, names)
    count = len(scan.prints)
    wish = config.hold_out
    both = " and ".join(names)
    given = " and ".join(f"data.{name}" for name in names)
    if wish is not None and wish * len(names) * 2 > count:
        most = count // len(names) // 2
        rule = f"{both} of that size would take more than half of {count:,} pairs"
        smaller = f"ask for up to {most:,}, or " if most else ""
        raise InputError(f"data.hold_out = {wish}: {rule}; {smaller}give {given}")
    seen = history.saw(scan.prints)
    size = default_size(count) if wish is None else wish
    set_of = hold_out(scan.prints, scan.order, size, len(names), seen)
    counts = [int(np.sum(set_of == number)) for number in range(len(names) + 1)]
    if not all(counts):
        origin = f"data.train = {config.train!r}" if config.mix is None else "data.mix"
        learned = f" ({seen.sum():,} of them known to {history.path})" if seen.any() else ""
        raise InputError(
            f"{origin}: {count:,} pairs{learned} are too few or too much "
            f"alike to hold out {both}; give {given}"
        )
    sizes = [f"{size:,} for {name}" for name, size in zip(names, counts[1:], strict=True)]
    note = f"held out of {count:,} pairs: {' and '.join(sizes)}"
    if wish is not None and min(counts[1:]) < wish:
        reason = "the others share sentences with too many pairs"
        if seen.any():
            reason += f", or are known to {history.path}"
        note = f"data.hold_out = {wish}, but {note}; {reason}"
    notes.append(note)
    return set_of
