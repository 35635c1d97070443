"""Picture files, by Pillow: one scaled to what a model takes, and folders with one folder for each class."""

import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from seq2see.errors import InputError

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
FORMATS = (
    "BMP",
    "GIF",
    "JPEG",
    "PNG",
    "PPM",
    "TIFF",
    "WEBP",
)  # no others: Pillow would start Ghostscript for one
MOST_PIXELS = 64_000_000  # a file of a few bytes can unfold to more than the memory holds
MODES = {1: "L", 3: "RGB"}
WIDENED = (
    "PNG",
    "PPM",
)  # have no more than 16 bits, which come as 32; a PNG's from older Pillows alone

Size = tuple[int, int]  # height, width


def read_picture(path: Path, channels: int, size: Size | None = None) -> Tensor:
    """A file as bytes (C, H, W): upright as its camera was held, in grey or colour, scaled if a size is given.

    Of 16 bits the upper 8 count, and what is transparent is white.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as opened:
                width, height = opened.size
                if width * height > MOST_PIXELS:
                    raise InputError(
                        f"{path}: {width} × {height} pixels; at most {MOST_PIXELS:,} are read"
                    )
                sixteen = opened.mode.startswith("I;16") or (
                    opened.mode == "I" and opened.format in WIDENED
                )
                upright = _in_bytes(_upright(opened), sixteen, path).convert(MODES[channels])
    except UnidentifiedImageError:
        raise InputError(
            f"{path}: not a picture, or of a kind that is not read: {', '.join(FORMATS)}"
        ) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InputError(f"{path}: too many pixels; at most {MOST_PIXELS:,} are read") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the picture: {error.strerror or error}") from None
    except (
        ValueError,
        SyntaxError,
        EOFError,
    ) as error:  # what Pillow's decoders say of a broken file
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: a broken picture: {error}") from None
    if size is not None and (upright.height, upright.width) != size:
        upright = upright.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(upright, dtype=np.uint8))
    return (
        (pixels[..., None] if channels == 1 else pixels).permute(2, 0, 1).contiguous()
    )  # (C, H, W)


def _upright(picture: Image.Image) -> Image.Image:
    """As its camera was held, if it says so."""
    picture.load()  # what is wrong with the pixels is no matter of the notes beside them
    try:
        return ImageOps.exif_transpose(picture)
    except (
        struct.error,
        SyntaxError,
        ValueError,
        TypeError,
        KeyError,
    ):  # notes that were cut or are none
        return picture


def _in_bytes(picture: Image.Image, sixteen: bool, path: Path) -> Image.Image:
    """Without what Pillow, asked to convert, clips or drops and does not say so: numbers above 255, transparency."""
    if sixteen:
        return Image.fromarray((np.array(picture) >> 8).astype(np.uint8))
    if picture.mode in ("I", "F"):
        raise InputError(
            f"{path}: pixels of unknown range (Pillow's mode {picture.mode}); save it with 8 or 16 bits"
        )
    if picture.has_transparency_data:
        return Image.alpha_composite(
            Image.new("RGBA", picture.size, "white"), picture.convert("RGBA")
        )
    return picture


def classes_in(folder: Path) -> list[str]:
    """The names of a folder's folders, which are those of the classes."""
    names = sorted(
        each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")
    )
    if len(names) < 2:
        raise InputError(
            f"{folder}: {len(names)} folders in there; each class has one, and there are at least two"
        )
    return names


def paths_in(folder: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    """The pictures of each class with its number, in the order of their names."""
    if unknown := sorted({*classes_in(folder)} - {*classes}):
        raise InputError(f"{folder / unknown[0]}: a class that train has not: {', '.join(classes)}")
    found = [
        (path, number)
        for number, name in enumerate(classes)
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in ENDINGS and not path.name.startswith(".")
    ]
    if not found:
        raise InputError(f"{folder}: no pictures in there; {', '.join(ENDINGS)} are read")
    return found


def read_pictures(paths: Sequence[Path], channels: int, size: Size | None) -> Tensor:
    """Files as bytes (N, C, H, W); if no size is given, all must be as large as the first."""
    pixels = [read_picture(path, channels, size) for path in paths]
    for path, each in zip(paths, pixels, strict=True):
        if each.shape != pixels[0].shape:
            first, other = (f"{p.shape[2]} × {p.shape[1]}" for p in (pixels[0], each))
            raise InputError(
                f"{path}: {other} pixels, and {paths[0]} has {first}; data.size scales all to one size"
            )
    return torch.stack(pixels)
