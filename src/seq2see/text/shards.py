"""Shards of a store: rows of numbers in a file that is memory-mapped."""

import hashlib
import mmap
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2see.errors import InputError
from seq2see.files import write_atomically
from seq2see.text.lines import Pair

PAIRS = 1 << 15  # of a shard
OFFSET = np.dtype("<u4")
Numbers = npt.NDArray[Any]


class Shard:
    """Two rows of numbers for each pair, read where they are needed.

    A file holds the offsets of 2 N rows, 2 N + 1 numbers of 32 bits, and then the rows themselves.
    """

    def __init__(self, path: Path, pairs: int, type: str) -> None:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.offsets: Numbers = np.frombuffer(content, OFFSET, 2 * pairs + 1)
        self.numbers: Numbers = np.frombuffer(content, type, offset=self.offsets.nbytes)

    @property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Numbers in the two rows of each pair: (N, 2)."""
        return np.diff(self.offsets).astype(np.int32).reshape(-1, 2)

    def __getitem__(self, pair: int) -> tuple[Numbers, Numbers]:
        first, second, end = self.offsets[2 * pair : 2 * pair + 3].tolist()
        return self.numbers[first:second], self.numbers[second:end]


def id_type(size: int) -> str:
    """The type of the ids of a vocabulary."""
    return "<u2" if size <= 1 << 16 else "<u4"


def write_shard(
    path: Path, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], type: str
) -> dict[str, Any]:
    """Write a shard; return the number of its bytes and their SHA-256."""
    rows = list(chain.from_iterable(pairs))
    offsets = np.cumsum([0, *map(len, rows)], dtype=OFFSET)
    numbers = np.fromiter(chain.from_iterable(rows), dtype=type, count=int(offsets[-1]))
    content = offsets.tobytes() + numbers.tobytes()
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_texts(path: Path, pairs: Iterable[Pair]) -> dict[str, Any]:
    """Write a shard of texts in UTF-8."""
    encoded = ((source.encode(), target.encode()) for source, target in pairs)
    return write_shard(path, encoded, "u1")


def check(path: Path, file: dict[str, Any]) -> None:
    """Refuse a shard with another size or checksum than recorded."""
    hint = "remove its folder, and it is made again"
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot read the store: {error.strerror}; {hint}") from None
    if digest != file["sha256"]:
        problem = f"{path.stat().st_size:,} bytes instead of {file['bytes']:,}"
        if path.stat().st_size == file["bytes"]:
            problem = "its SHA-256 is not the one recorded"
        raise InputError(f"{path}: damaged: {problem}; {hint}")
