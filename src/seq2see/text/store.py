"""The store: a training set as ids in memory-mapped files, made once and shared by runs.

A store is a folder named by the hash of all that its ids depend on. Shards of equally many pairs
are written one by one, so that a killed process loses only those that it was working on;
`store.json` with the checksums comes last.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from seq2see.errors import InputError, WorkError
from seq2see.files import sync, write_text
from seq2see.text.encode_pool import EncodePool
from seq2see.text.encoding import Encoder, IdPair
from seq2see.text.exchange import Exchange
from seq2see.text.lines import Pair
from seq2see.text.progress import Progress, silent
from seq2see.text.shards import PAIRS, Shard, check, id_type, write_shard

Sizes = npt.NDArray[np.signedinteger[Any]]

VERSION = 1
INDEX, FINISHED = "store.json", "finished.jsonl"
ENCODING = "encoding the training pairs"
CACHE = "SEQ2SEE_CACHE"


class Store(Sequence[IdPair]):
    """Pairs of ids by line; their texts, too, if they are kept."""

    def __init__(
        self, ids: list[Shard], texts: list[Shard], exchanged: dict[str, int] | None = None
    ) -> None:
        self.exchanged = exchanged or {}  # what was changed in the texts, by kind
        self._ids = ids
        self._texts = texts
        sizes = [np.empty((0, 2), dtype=np.int32), *(shard.sizes for shard in ids)]
        whole = np.concatenate(sizes)
        # Half the memory, with room for the marks of begin and end.
        short = whole.max(initial=0) < np.iinfo(np.int16).max
        self.sizes: Sizes = whole.astype(np.int16) if short else whole  # (N, 2), in tokens

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, line: int) -> IdPair: ...
    @overload
    def __getitem__(self, line: slice) -> list[IdPair]: ...
    def __getitem__(self, line: int | slice) -> IdPair | list[IdPair]:
        if isinstance(line, slice):
            return [self[place] for place in range(len(self))[line]]
        line = range(len(self))[line]
        source, target = self._ids[line // PAIRS][line % PAIRS]
        return source.tolist(), target.tolist()

    def texts(self, line: int) -> Pair:
        source, target = self._texts[line // PAIRS][line % PAIRS]
        return source.tobytes().decode(), target.tobytes().decode()

    @classmethod
    def drawn(cls, pairs: Iterable[IdPair], size: int, root: Path) -> "Store":
        """Put pairs that last for an epoch into files without names; `size` is the vocabulary's."""
        ids = []
        place = root if root.is_dir() else None  # a temporary run may have lost its folder
        with tempfile.TemporaryDirectory(dir=place, prefix="drawn-") as folder:
            for number, block in enumerate(_blocks(pairs)):
                path = Path(folder) / f"{number:05d}.ids"
                write_shard(path, block, id_type(size))
                ids.append(Shard(path, len(block), id_type(size)))
        return cls(ids, [])


def root_of(run: Path) -> Path:
    """The folder of stores: the run's own, or the one that runs share."""
    shared = os.environ.get(CACHE)
    return Path(shared).expanduser() / "stores" if shared else run / "store"


def open_or_build(
    root: Path, origin: dict[str, Any], texts: "Texts", run: Path, progress: Progress = silent
) -> Store:
    """Open the store of a training set, or make it from the texts; `origin` tells it from others.

    Tokenizers are read from the folder of the run.
    """
    about = {"version": VERSION, "shard": PAIRS, **origin, **texts.settings()}
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    folder = root / key[:16]
    try:
        if not (folder / INDEX).exists():
            folder.mkdir(parents=True, exist_ok=True)
            _build(folder, texts, run, progress)
    except OSError as error:
        raise WorkError(f"{folder}: cannot write the store: {error.strerror}") from None
    if root == run / "store":
        _remove_others(folder)
    return _open(folder, texts)


class Texts:
    """The texts of a training set, and how they become ids."""

    def __init__(
        self,
        pairs: Iterable[Pair],
        count: int,
        encoder: Encoder,
        kept: bool = False,
        exchange: Exchange | None = None,
    ) -> None:
        """Keep the texts beside their ids if these are drawn anew in each epoch."""
        self.pairs = pairs if exchange is None else exchange.of(pairs)
        self.exchange = exchange
        self.count = count
        self.encoder = encoder
        self.kept = kept

    def settings(self) -> dict[str, Any]:
        settings = {"texts": self.kept, "pairs": self.count, **self.encoder.settings()}
        return settings if self.exchange is None else settings | self.exchange.settings()


def _build(folder: Path, texts: Texts, run: Path, progress: Progress) -> None:
    """Write the shards that are missing, and then the index."""
    finished = _finished(folder)
    count = -(-texts.count // PAIRS)
    done = sum(entry["pairs"] for entry in finished.values())
    progress(ENCODING, done / texts.count)
    jobs = (
        (number, block)
        for number, block in enumerate(_blocks(texts.pairs))
        if number not in finished
    )
    with (
        (folder / FINISHED).open("a", encoding="utf-8") as log,
        EncodePool(folder, run, texts.encoder, texts.kept, count - len(finished)) as pool,
    ):
        for entry in pool.map(jobs):
            finished[entry["shard"]] = entry
            log.write(f"{json.dumps(entry)}\n")
            log.flush()
            os.fsync(log.fileno())
            done += entry["pairs"]
            progress(ENCODING, done / texts.count)
    shards = [finished[number] for number in sorted(finished)]
    index = {"version": VERSION, "pairs": done, "shards": shards}
    if texts.exchange is not None:
        index["exchanged"] = dict(texts.exchange.counts)
    write_text(folder / INDEX, json.dumps(index, indent=1) + "\n")
    (folder / FINISHED).unlink(missing_ok=True)
    sync(folder)


def _finished(folder: Path) -> dict[int, dict[str, Any]]:
    """The shards that an earlier process has finished."""
    path = folder / FINISHED
    finished: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # half a line: the process was killed
        files = entry["files"].items()
        if all(_size(folder / name) == file["bytes"] for name, file in files):
            finished[entry["shard"]] = entry
    return finished


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _blocks(pairs: Iterable[Any]) -> Iterator[list[Any]]:
    stream = iter(pairs)
    while block := list(islice(stream, PAIRS)):
        yield block


def _open(folder: Path, texts: Texts) -> Store:
    """Open a finished store whose checksums are right."""
    try:
        index = json.loads((folder / INDEX).read_bytes())
        shards = index["shards"]
        complete = index["pairs"] == texts.count and index["version"] == VERSION
        names = [name for entry in shards for name in entry["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"not the index of a store: {error!r}; remove its folder, and it is made again"
        raise InputError(f"{folder / INDEX}: {problem}") from None
    if not complete:
        problem = f"{index['pairs']:,} pairs instead of {texts.count:,}"
        raise InputError(f"{folder / INDEX}: {problem}; remove its folder, and it is made again")
    for entry in shards:
        for name, file in entry["files"].items():
            check(folder / name, file)
    ids, kept = [], []
    type = id_type(texts.encoder.largest)
    counts = [entry["pairs"] for entry in shards for _ in entry["files"]]
    for name, count in zip(names, counts, strict=True):
        if name.endswith(".ids"):
            ids.append(Shard(folder / name, count, type))
        else:
            kept.append(Shard(folder / name, count, "u1"))
    return Store(ids, kept, index.get("exchanged"))


def _remove_others(folder: Path) -> None:
    """Remove the stores of a run before its corpus or its vocabulary changed."""
    for other in folder.parent.iterdir():
        if other != folder and any((other / name).exists() for name in (INDEX, FINISHED)):
            shutil.rmtree(other, ignore_errors=True)
