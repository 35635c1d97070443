"""Record of a reading: what was decided on a training set, kept beside its store.

It serves the next start, which then need not read the texts, as long as the content of all files,
their settings and the history of the run are the same.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seq2see.errors import InputError, WorkError
from seq2see.files import sha256, write_atomically, write_text
from seq2see.recipe.schema import DataConfig
from seq2see.text.history import Fingerprints, Flags, History
from seq2see.text.lines import Pair
from seq2see.text.progress import Progress
from seq2see.text.shards import check

VERSION = 1
PREFIX, INDEX = "corpus-", "corpus.json"
PRINTS, CHOSEN = "fingerprints", "chosen"


@dataclass(frozen=True)
class Facts:
    """The outcome of a reading but for its large arrays."""

    digest: str  # SHA-256 of the training pairs
    counts: list[int]  # pairs with text on both sides, of each corpus
    dropped: int  # pairs with an empty side
    left_out: int  # pairs that share a sentence with a held-out set
    overlap: dict[str, int]  # the same, by set
    held_out: dict[str, list[Pair]]  # texts of the sets that are held out of the training set
    notes: list[str]


@dataclass(frozen=True)
class Reading:
    """The outcome of a reading."""

    facts: Facts
    prints: Fingerprints  # (N, 2) of the pairs to train on
    chosen: Flags  # of the pairs with text on both sides, up to the last to train on


@dataclass(frozen=True)
class _Index:
    source: str  # hash of files and settings
    histories: list[str]  # hashes of the one that the reading began with, and the one it led to
    files: dict[str, dict[str, Any]]
    facts: Facts


class Record:
    """The place of a reading among the stores."""

    def __init__(self, root: Path, source: str, history: History) -> None:
        """Tell readings apart by the hash of their source and the history they began with."""
        self.root = root
        self.source = source
        self.history = _digest(history)
        key = hashlib.sha256(f"{source} {self.history}".encode()).hexdigest()
        self.folder = root / f"{PREFIX}{key[:16]}"

    def find(self) -> Reading | None:
        """Open the reading that began with this history, or led to it."""
        for path in sorted(self.root.glob(f"{PREFIX}*/{INDEX}")):
            ours = path.parent == self.folder
            values = _values(path, ours)
            same_source = values.get("source") == self.source
            if ours or (same_source and self.history in values["histories"]):
                return _open(path.parent, _index(path, values))
        return None

    def save(self, reading: Reading, history: History, alone: bool) -> None:
        """Write a reading and the hash of the history that it leads to; the index comes last.

        Where records are `alone`, those of the corpus or the settings before are removed.
        """
        try:
            if not (self.folder / INDEX).exists():  # another process of the run may have written it
                self._write(reading, history)
        except OSError as error:
            raise WorkError(f"{self.folder}: cannot write: {error.strerror}") from None
        for other in self.root.glob(f"{PREFIX}*") if alone else ():
            if other != self.folder:
                shutil.rmtree(other, ignore_errors=True)

    def _write(self, reading: Reading, history: History) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for name, array in ((PRINTS, reading.prints.astype("<u8")), (CHOSEN, reading.chosen)):
            write_atomically(self.folder / name, array.tofile)
            files[name] = {"bytes": array.nbytes, "sha256": sha256(self.folder / name)}
        index = _Index(self.source, [self.history, _digest(history)], files, reading.facts)
        write_text(self.folder / INDEX, json.dumps(asdict(index)) + "\n")


def source_of(files: Sequence[Path], config: DataConfig, progress: Progress) -> str:
    """Hash the content of all files of a corpus and the settings by which they are read."""
    sums = []
    for number, path in enumerate(files):
        progress("computing the checksums of the corpus", number / len(files))
        try:
            sums.append((str(path.absolute()), sha256(path)))
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror}") from None
    about = [VERSION, config.model_dump(mode="json"), sums]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _digest(history: History) -> str:
    parts = {"train": history.train, "ancestors": history.ancestors, **history.held_out}
    digest = hashlib.sha256(f"{history.complete} {history.unknown}".encode())
    for name, prints in sorted(parts.items()):
        digest.update(f" {name} {len(prints)} ".encode())
        digest.update(np.ascontiguousarray(prints).data)
    return digest.hexdigest()


def _values(path: Path, ours: bool) -> dict[str, Any]:
    """Read an index as it is; another version may have written it. Skip others that are broken."""
    try:
        values: dict[str, Any] = json.loads(path.read_bytes())
        return {"histories": [], **values}
    except (OSError, ValueError, TypeError) as error:
        if ours:
            raise _damaged(path, error) from None
        return {}


def _index(path: Path, values: dict[str, Any]) -> _Index:
    try:
        texts = values["facts"].pop("held_out")
        held_out = {name: [(pair[0], pair[1]) for pair in texts[name]] for name in texts}
        return _Index(**values | {"facts": Facts(**values["facts"], held_out=held_out)})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    hint = "remove its folder, and the corpus is read again"
    return InputError(f"{path}: not the index of a reading: {error!r}; {hint}")


def _open(folder: Path, index: _Index) -> Reading:
    """Map the arrays of a reading into memory, if their checksums are right."""
    for name, file in index.files.items():
        check(folder / name, file)
    prints = np.memmap(folder / PRINTS, "<u8", "r").reshape(-1, 2)
    return Reading(index.facts, prints, np.memmap(folder / CHOSEN, np.bool_, "r"))
