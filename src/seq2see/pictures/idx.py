"""IDX, the format of MNIST and its kin: a magic number, the size of each dimension, then bytes."""

import gzip
import math
import zlib
from io import BufferedReader
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError

BYTES = 8  # the type of the numbers; other files hold floats, which no picture here is
MOST = 2**32  # bytes of a file's content


def path_of(folder: Path, part: str, kind: str) -> Path | None:
    """`train-images-idx3-ubyte` and the like, plain or packed, if it is there."""
    name = f"{part}-images-idx3-ubyte" if kind == "images" else f"{part}-labels-idx1-ubyte"
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read(path: Path, dimensions: int) -> Tensor:
    """The bytes of a file, (N,) or (N, H, W), after checking that it is what it says."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _content(gzip.GzipFile(fileobj=file) if packed else file, path, dimensions)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: a truncated or corrupt gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None


def _content(file: gzip.GzipFile | BufferedReader, path: Path, dimensions: int) -> Tensor:
    magic, wanted = file.read(4), bytes([0, 0, BYTES, dimensions])
    if magic != wanted:
        raise InputError(
            f"{path}: begins with 0x{magic.hex()}; an IDX file of this kind begins with 0x{wanted.hex()}"
        )
    header = file.read(4 * dimensions)
    if len(header) < 4 * dimensions:
        raise InputError(f"{path}: ends within its header, it is truncated")
    sizes = [int.from_bytes(header[start : start + 4]) for start in range(0, 4 * dimensions, 4)]
    wanted_bytes = math.prod(sizes)
    if not 0 < wanted_bytes <= MOST:
        raise InputError(
            f"{path}: says it holds {' × '.join(map(str, sizes))} bytes; at least 1, at most {MOST:,}"
        )
    content = file.read(wanted_bytes + 1)  # one more shows whether there is more
    if len(content) != wanted_bytes:
        found = "more" if len(content) > wanted_bytes else f"{len(content):,}, it is truncated"
        raise InputError(f"{path}: says it holds {wanted_bytes:,} bytes and has {found}")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(sizes)
