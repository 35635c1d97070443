"""Picture files, read with Pillow: single files, and folders with one folder per class."""

import io
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from seq2see.errors import InputError

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
# A closed list, since Pillow would run Ghostscript on an EPS file.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# Those that browsers show; libtiff would write its complaints into the log of a server.
SENT = ("BMP", "GIF", "JPEG", "PNG", "WEBP")
MOST_PIXELS = 64_000_000  # a file of a few bytes can expand beyond the memory
MODES = {1: "L", 3: "RGB"}
# Pillow gives their 16 bits as 32 ("I"); of PNG, older versions do.
WIDENED = ("PNG", "PPM")

Size = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Bounds:
    """Pictures that are decoded."""

    pixels: int = MOST_PIXELS
    formats: tuple[str, ...] = FORMATS


FILES = Bounds()


def read_picture(path: Path, channels: int, size: Size | None = None) -> Tensor:
    """Read a file as bytes (C, H, W), grey or RGB, upright, and resized if a size is given.

    16-bit pixels keep their upper 8 bits; transparent pixels become white.
    """
    return _pixels(_open(path, str(path), MODES[channels]), channels, size)


def decode_picture(content: bytes, channels: int, size: Size, most_pixels: int) -> Tensor:
    """Decode the bytes of a file that somebody sent, as `read_picture` decodes files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on broken metadata, which does no harm
        bounds = Bounds(most_pixels, SENT)
        picture = _open(io.BytesIO(content), "picture", MODES[channels], bounds)
    return _pixels(picture, channels, size)


def _pixels(picture: Image.Image, channels: int, size: Size | None) -> Tensor:
    if size is not None and (picture.height, picture.width) != size:
        picture = picture.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(picture, dtype=np.uint8))
    if channels == 1:
        pixels = pixels[..., None]
    return pixels.permute(2, 0, 1).contiguous()  # (C, H, W)


def _open(file: Path | IO[bytes], name: str, mode: str, bounds: Bounds = FILES) -> Image.Image:
    """Decode a file, and report everything that can be wrong with it as an InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return _decode(file, name, mode, bounds)
    except UnidentifiedImageError:
        known = ", ".join(bounds.formats)
        raise InputError(f"{name}: not a picture of a known format: {known}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InputError(f"{name}: too many pixels; at most {bounds.pixels:,} are read") from None
    except OSError as error:
        raise InputError(f"{name}: cannot read the picture: {error.strerror or error}") from None
    except InputError:
        raise
    except (ValueError, SyntaxError, EOFError) as error:  # raised by Pillow's decoders
        raise InputError(f"{name}: a broken picture: {error}") from None


def _decode(file: Path | IO[bytes], name: str, mode: str, bounds: Bounds) -> Image.Image:
    with Image.open(file, formats=bounds.formats) as opened:
        width, height = opened.size
        if width * height > bounds.pixels:
            rule = f"at most {bounds.pixels:,} are read"
            raise InputError(f"{name}: {width} × {height} pixels; {rule}")
        widened = opened.mode == "I" and opened.format in WIDENED
        sixteen_bits = widened or opened.mode.startswith("I;16")
        return _to_8_bits(_upright(opened), sixteen_bits, name).convert(mode)


def _upright(picture: Image.Image) -> Image.Image:
    """Rotate a picture as its EXIF orientation says; ignore broken EXIF data."""
    picture.load()  # outside the try block: broken pixels must not pass for broken EXIF data
    try:
        return ImageOps.exif_transpose(picture)
    except (struct.error, SyntaxError, ValueError, TypeError, KeyError):
        return picture


def _to_8_bits(picture: Image.Image, sixteen_bits: bool, name: str) -> Image.Image:
    """Reduce to 8 bits without transparency; `convert` alone would clip and drop silently."""
    if sixteen_bits:
        return Image.fromarray((np.array(picture) >> 8).astype(np.uint8))
    if picture.mode in ("I", "F"):
        raise InputError(
            f"{name}: pixels of unknown range (Pillow's mode {picture.mode}); "
            "save it with 8 or 16 bits"
        )
    if picture.has_transparency_data:
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture.convert("RGBA"))
    return picture


def classes_in(folder: Path) -> list[str]:
    """List a folder's folders, whose names are those of the classes."""
    names = sorted(
        entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != "."
    )
    if len(names) < 2:
        raise InputError(
            f"{folder}: {len(names)} folders inside; it must have one per class, and at least two"
        )
    return names


def paths_in(folder: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    """List the pictures of each class with the number of the class, sorted by name."""
    if unknown := sorted({*classes_in(folder)} - {*classes}):
        raise InputError(f"{folder / unknown[0]}: not a class of train: {', '.join(classes)}")
    paths = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]
    if not paths:
        raise InputError(f"{folder}: no pictures inside; {', '.join(SUFFIXES)} are read")
    return paths


def read_pictures(paths: Sequence[Path], channels: int, size: Size | None) -> Tensor:
    """Read files as bytes (N, C, H, W); without a size, all must be as large as the first."""
    pictures = [read_picture(path, channels, size) for path in paths]
    first = pictures[0]
    for path, picture in zip(paths, pictures, strict=True):
        if picture.shape != first.shape:
            raise InputError(
                f"{path}: {dimensions(picture)} pixels, and {paths[0]} has {dimensions(first)}; "
                "data.size scales all to one size"
            )
    return torch.stack(pictures)


def dimensions(pixels: Tensor) -> str:
    """Format the size of pictures (…, H, W) as "width × height"."""
    return f"{pixels.shape[-1]} × {pixels.shape[-2]}"
