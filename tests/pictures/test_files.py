"""Picture files: size, colours and orientation; folders by class; refused files."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from seq2see.errors import InputError
from seq2see.pictures import files


def save(
    path: Path, height: int = 4, width: int = 6, colour: int | tuple[int, int, int] = 200
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "L" if isinstance(colour, int) else "RGB"
    Image.new(mode, (width, height), colour).save(path)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.gif"])
def test_pixels_come_as_they_are(tmp_path: Path, name: str) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
    Image.fromarray(pixels).save(tmp_path / name)
    assert torch.equal(files.read_picture(tmp_path / name, 1)[0], torch.from_numpy(pixels))


def test_colour_becomes_grey_and_grey_becomes_colour(tmp_path: Path) -> None:
    red = files.read_picture(save(tmp_path / "red.png", colour=(255, 0, 0)), 3)
    assert red.shape == (3, 4, 6) and red[:, 0, 0].tolist() == [255, 0, 0]
    assert files.read_picture(tmp_path / "red.png", 1).unique().tolist() == [76]  # 0.299 of it
    assert files.read_picture(save(tmp_path / "grey.png"), 3)[:, 0, 0].tolist() == [200, 200, 200]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits_are_reduced_to_the_upper_eight(tmp_path: Path, name: str) -> None:
    pixels = np.arange(24, dtype=np.uint16).reshape(4, 6) * 10
    if name == "a.pgm":
        (tmp_path / name).write_bytes(
            b"P5 6 4 65535\n" + (pixels * 256 + 99).astype(">u2").tobytes()
        )
    else:
        Image.fromarray(pixels * 256 + 99).save(tmp_path / name)
    for channels in (1, 3):
        picture = files.read_picture(tmp_path / name, channels)
        expected = torch.from_numpy(pixels.astype(np.uint8)).expand(channels, -1, -1)
        assert torch.equal(picture, expected)


@pytest.mark.parametrize(("kind", "mode"), [(np.float32, "F"), (np.int32, "I")])
def test_pixels_of_unknown_range_are_refused(
    tmp_path: Path, kind: type[np.generic], mode: str
) -> None:
    path = tmp_path / "a.tif"
    Image.fromarray(np.ones((4, 6), dtype=kind)).save(path)
    with pytest.raises(InputError) as caught:
        files.read_picture(path, 1)
    says = f"pixels of unknown range (Pillow's mode {mode}); save it with 8 or 16 bits"
    assert str(caught.value) == f"{path}: {says}"


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L"])
def test_transparent_pixels_are_white(tmp_path: Path, mode: str) -> None:
    """Black ink on a transparent ground: by an alpha channel, or by a transparent colour."""
    path = tmp_path / "a.png"
    if mode == "L":
        Image.fromarray(np.array([[0, 9]], dtype=np.uint8)).save(path, transparency=9)
    else:
        ink = Image.fromarray(np.array([[[0, 0, 0, 255], [0, 0, 0, 0]]], dtype=np.uint8))
        ink.convert(mode).save(path)
    for channels in (1, 3):
        assert files.read_picture(path, channels).tolist() == [[[0, 255]]] * channels


def test_a_picture_is_scaled_to_height_and_width(tmp_path: Path) -> None:
    pixels = np.zeros((4, 6), dtype=np.uint8)
    pixels[:, 3:] = 255  # its right half
    Image.fromarray(pixels).save(tmp_path / "a.png")
    scaled = files.read_picture(tmp_path / "a.png", 1, (2, 12))[0]
    assert scaled.shape == (2, 12)
    assert (scaled[:, :5] < 20).all() and (scaled[:, 7:] > 235).all()


def test_a_picture_is_rotated_by_its_exif_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.new("L", (6, 4)).save(tmp_path / "a.jpg", exif=exif)
    assert files.read_picture(tmp_path / "a.jpg", 1).shape == (1, 6, 4)
    Image.new("LA", (6, 4)).save(tmp_path / "a.png", exif=exif)
    assert files.read_picture(tmp_path / "a.png", 1).shape == (1, 6, 4)


@pytest.mark.parametrize("exif", [b"Exif\0\0II*\0", b"Exif\0\0no TIFF"])
def test_broken_exif_data_are_ignored(tmp_path: Path, exif: bytes) -> None:
    Image.new("L", (6, 4), 7).save(tmp_path / "a.png", exif=exif)
    assert files.read_picture(tmp_path / "a.png", 1).eq(7).all()


def bomb(side: int) -> bytes:
    """Make a PNG of a few bytes that claims `side` × `side` pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(9)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"no picture at all",
            "not a picture of a known format: BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP",
        ),
        (b"", "not a picture"),
        (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
            "not a picture",
        ),  # would be executed
        (bomb(9_000), "9000 × 9000 pixels; at most 64,000,000 are read"),
        (bomb(10_000), "too many pixels; at most 64,000,000 are read"),  # Pillow warns of it
        (bomb(60_000), "too many pixels; at most 64,000,000 are read"),  # Pillow refuses it
        (bomb(50), "cannot read the picture: "),  # truncated
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        files.read_picture(path, 1)
    assert str(caught.value).startswith(f"{path}: {says}") and "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"a\.png: cannot read the picture: No such file or directory$"
    ):
        files.read_picture(tmp_path / "a.png", 1)
    with pytest.raises(InputError, match=r"cannot read the picture: Is a directory$"):
        files.read_picture(tmp_path, 1)


def test_each_folder_is_a_class_and_other_files_are_ignored(tmp_path: Path) -> None:
    for name in ("dog/b.png", "cat/c.JPG", "cat/a.png", "cat/deep/d.png", ".hidden/e.png"):
        save(tmp_path / name)
    (tmp_path / "cat" / "notes.txt").touch()
    classes = files.classes_in(tmp_path)
    assert classes == ["cat", "dog"]
    names = [
        (path.relative_to(tmp_path).as_posix(), label)
        for path, label in files.paths_in(tmp_path, classes)
    ]
    assert names == [("cat/a.png", 0), ("cat/c.JPG", 0), ("cat/deep/d.png", 0), ("dog/b.png", 1)]
    with pytest.raises(InputError, match=r"dog: not a class of train: cat, cow$"):
        files.paths_in(tmp_path, ["cat", "cow"])
    with pytest.raises(
        InputError, match="1 folders inside; it must have one per class, and at least two"
    ):
        files.classes_in(tmp_path / "cat")


def test_pictures_of_a_folder_have_one_size(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.png", 4, 6), save(tmp_path / "b.png", 6, 4)]
    assert files.read_pictures(paths, 1, (5, 5)).shape == (2, 1, 5, 5)
    with pytest.raises(
        InputError, match=r"b\.png: 4 × 6 pixels, and .*a\.png has 6 × 4; data\.size scales all"
    ):
        files.read_pictures(paths, 1, None)
