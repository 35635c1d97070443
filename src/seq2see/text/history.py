"""History of a model: fingerprints of the sentences that it was trained on and held out.

They let a run keep its held-out sets, and tell a corpus that has grown from a different one. A run
that starts from another model (`--init`) is not tested on sentences that model was trained on.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from seq2see.errors import InputError
from seq2see.files import write_atomically
from seq2see.text.lines import Pair
from seq2see.text.parallel import normalised

FILE = "history.safetensors"
BYTES = 8  # of a fingerprint
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd: no bit of the first column is lost
BLOCK = 1 << 20  # fingerprints that are looked up at a time
HELD_OUT, INCOMPLETE = "held_out/", "incomplete"

Fingerprints = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


def fingerprints(pairs: Iterable[Pair]) -> Fingerprints:
    """Hash source and target of each pair: (N, 2)."""
    texts = (normalised(text).encode() for text in chain.from_iterable(pairs))
    return hashed(texts, columns=2)


def hashed(items: Iterable[bytes], columns: int) -> Fingerprints:
    """Hash items that belong together in groups of `columns`: (N, columns)."""
    digests = bytearray()
    for item in items:
        digests += hashlib.blake2b(item, digest_size=BYTES).digest()
    numbers = np.frombuffer(digests, dtype="<u8")
    return numbers.astype(np.uint64).reshape(-1, columns)


def in_text_order(pairs: Iterable[Pair]) -> Fingerprints:
    """Hash each pair as it is written: numbers that order pairs by their text alone (N,)."""
    return hashed(("\n".join(pair).encode() for pair in pairs), columns=1)[:, 0].byteswap()


def keys(prints: Fingerprints) -> Fingerprints:
    """Mix the fingerprints of each row into one number: (N, C) → (N,)."""
    mixed = prints[:, 0]
    for column in prints.T[1:]:
        mixed = mixed * MULTIPLIER + column
    return mixed


def empty(*shape: int) -> Fingerprints:
    return np.empty(shape, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class History:
    """Fingerprints of a model's data, and of all that the models before it were trained on."""

    train: Fingerprints = field(default_factory=lambda: empty(0, 2))  # (N, 2); of pictures (N, 1)
    held_out: dict[str, Fingerprints] = field(default_factory=dict)  # "val", "test/NAME"
    ancestors: Fingerprints = field(default_factory=lambda: empty(0))  # (M,), sorted
    complete: bool = True  # whether those of every ancestor are known
    path: Path | None = None  # the model directory that it was read from
    unknown: bool = False  # whether that directory, of an earlier version, has no history

    def inherited(self) -> "History":
        """The history with which a child of this model begins."""
        seen = np.union1d(self.train.ravel(), self.ancestors)
        return History(ancestors=seen, complete=self.complete, path=self.path)

    def saw(self, prints: Fingerprints) -> Flags:
        """Whether an ancestor was trained on a sentence of each row."""
        return shared(prints, [self.ancestors])

    def missing(self, now: Fingerprints) -> int:
        """Number of training examples that are not among those of now."""
        return int(np.sum(~among(keys(self.train), keys(now))))

    def differs(self, name: str, now: "History") -> bool:
        """Whether a held-out set has other examples now, whatever their order."""
        there, here = (np.sort(keys(history.held_out[name])) for history in (self, now))
        return not np.array_equal(there, here)

    def save(self, folder: Path) -> None:
        tensors = {"train": self.train, "ancestors": self.ancestors}
        tensors |= {f"{HELD_OUT}{name}": prints for name, prints in self.held_out.items()}
        if not self.complete:
            tensors[INCOMPLETE] = empty(0)
        content = safetensors.numpy.save(
            {name: np.ascontiguousarray(prints) for name, prints in tensors.items()}
        )
        write_atomically(folder / FILE, lambda path: path.write_bytes(content))

    @classmethod
    def of(cls, folder: Path) -> "History":
        """The history of a model directory; that of an earlier version is unknown."""
        return cls.load(folder) or cls(complete=False, path=folder, unknown=True)

    @classmethod
    def load(cls, folder: Path) -> "History | None":
        """Read the history of a model directory; None for one of an earlier version."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            tensors = safetensors.numpy.load_file(path)
            held_out = {
                name.removeprefix(HELD_OUT): prints
                for name, prints in tensors.items()
                if name.startswith(HELD_OUT)
            }
            complete = INCOMPLETE not in tensors
            return cls(tensors["train"], held_out, tensors["ancestors"], complete, folder)
        except (SafetensorError, OSError, KeyError) as error:
            raise InputError(f"{path}: cannot read the history: {error}") from None


def shared(prints: Fingerprints, others: Sequence[Fingerprints]) -> Flags:
    """Whether each row has a fingerprint in common with the others."""
    known = np.concatenate([other.ravel() for other in others])
    return np.asarray(among(prints, known).any(axis=1), dtype=np.bool_)


def among(prints: Fingerprints, known: Fingerprints) -> Flags:
    """Whether each number is among the known ones; `numpy.isin` takes much more memory."""
    flags = np.zeros(prints.shape, dtype=np.bool_)
    if len(known):
        known = np.sort(known)
        for start in range(0, len(prints), BLOCK):
            block = prints[start : start + BLOCK]
            places = np.searchsorted(known, block).clip(max=len(known) - 1)
            flags[start : start + BLOCK] = known[places] == block
    return flags


def seen_in_training(folder: Path, pairs: Iterable[Pair]) -> int | None:
    """Count the pairs with a sentence that a model, or a known ancestor, was trained on.

    None if the directory does not tell: that of an earlier version, or an export.
    """
    history = History.load(folder)
    if history is None or not len(history.train):
        return None
    return int(history.inherited().saw(fingerprints(pairs)).sum())


def other_data(history: History, missing: int, count: int) -> InputError:
    """The refusal to continue or to evaluate on data that lacks the model's."""
    lack = f"{missing:,} of its {count:,} pairs are missing"
    hint = f"a new run may start from its weights: --init {history.path} with another --out"
    return InputError(f"{history.path}: was trained on other data: {lack} here; {hint}")


def all_seen(history: History, count: int, name: str) -> InputError:
    """The refusal of a held-out set that leaves nothing to test on."""
    rule = f"choose a {name} set that is new to it"
    return InputError(f"{history.path}: was trained on all {count:,} examples of {name}; {rule}")
