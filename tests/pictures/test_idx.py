"""IDX files: content, and a one-line error for every kind of broken file."""

import gzip
from pathlib import Path

import pytest
import torch

from seq2see.errors import InputError
from seq2see.pictures import idx

PICTURES = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4) for size in (2, 3, 5)) + bytes(range(30))


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_come_in_the_shape_of_the_header(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(PICTURES) if packed else PICTURES)
    pixels = idx.read(path, 3)
    assert pixels.dtype == torch.uint8
    assert torch.equal(pixels, torch.arange(30, dtype=torch.uint8).view(2, 3, 5))


def test_a_plain_file_is_preferred_to_a_packed_one(tmp_path: Path) -> None:
    assert idx.path_of(tmp_path, "train", "images") is None
    for name in (
        "t10k-labels-idx1-ubyte.gz",
        "train-images-idx3-ubyte.gz",
        "train-images-idx3-ubyte",
    ):
        (tmp_path / name).touch()
    assert idx.path_of(tmp_path, "train", "images") == tmp_path / "train-images-idx3-ubyte"
    assert idx.path_of(tmp_path, "t10k", "labels") == tmp_path / "t10k-labels-idx1-ubyte.gz"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "begins with 0x; an IDX file of this kind begins with 0x00000803"),
        (b"\x89PNG....", "begins with 0x89504e47; an IDX file of this kind begins with 0x00000803"),
        (
            bytes([0, 0, 8, 1]) + PICTURES[4:],
            "begins with 0x00000801; an IDX file of this kind begins with 0x00000803",
        ),
        (bytes([0, 0, 13, 3]) + PICTURES[4:], "begins with 0x00000d03"),
        (PICTURES[:-1], "truncated: its header announces 30 bytes, but it has 29"),
        (PICTURES[:9], "truncated: it ends inside its header"),
        (PICTURES + b"x", "its header announces 30 bytes, but it has more"),
        (
            PICTURES[:4] + b"\xff" * 12 + PICTURES[16:],
            "its header announces 4294967295 × 4294967295 × 4294967295 bytes; at",
        ),
        (PICTURES[:4] + bytes(12), "its header announces 0 × 0 × 0 bytes; at least 1"),
        (gzip.compress(PICTURES, mtime=0)[:-10], "a truncated or corrupt gzip file: "),
        (b"\x1f\x8bnothing packed", "a truncated or corrupt gzip file: "),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        idx.read(path, 3)
    assert str(caught.value).startswith(f"{path}: {says}") and "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: No such file"):
        idx.read(tmp_path / "a", 3)
