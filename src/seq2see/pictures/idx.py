"""IDX, the format of MNIST: a magic number, the size of each dimension, then bytes."""

import gzip
import math
import zlib
from io import BufferedReader
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError

UNSIGNED_BYTE = 8  # the only element type read; pictures have no other
MOST_BYTES = 2**32  # of content


def path_of(folder: Path, part: str, kind: str) -> Path | None:
    """Return the path of `train-images-idx3-ubyte` or the like, plain or .gz, if it exists."""
    name = f"{part}-images-idx3-ubyte" if kind == "images" else f"{part}-labels-idx1-ubyte"
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read(path: Path, dimensions: int) -> Tensor:
    """Read a file, plain or gzip, into bytes of shape (N,) or (N, H, W); check its header."""
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
    magic = file.read(4)
    expected = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    if magic != expected:
        raise InputError(
            f"{path}: begins with 0x{magic.hex()}; "
            f"an IDX file of this kind begins with 0x{expected.hex()}"
        )
    header = file.read(4 * dimensions)
    if len(header) < 4 * dimensions:
        raise InputError(f"{path}: truncated: it ends inside its header")
    sizes = [int.from_bytes(header[start : start + 4]) for start in range(0, 4 * dimensions, 4)]
    count = math.prod(sizes)
    if not 0 < count <= MOST_BYTES:
        raise InputError(
            f"{path}: its header announces {' × '.join(map(str, sizes))} bytes; "
            f"at least 1 and at most {MOST_BYTES:,} are read"
        )
    content = file.read(count + 1)  # one byte more shows whether the file continues
    if len(content) > count:
        raise InputError(f"{path}: its header announces {count:,} bytes, but it has more")
    if len(content) < count:
        raise InputError(
            f"{path}: truncated: its header announces {count:,} bytes, but it has {len(content):,}"
        )
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(sizes)
