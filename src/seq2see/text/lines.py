"""Text files, plain or gzip: their lines, checked while read."""

import gzip
import re
import zlib
from pathlib import Path

from seq2see.errors import InputError

Pair = tuple[str, str]  # a source and its target


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, plain or gzip, without its byte order mark."""
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise InputError(
            f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; a corpus is UTF-8 text"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: a truncated or corrupt gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    if (nul := text.find("\0")) >= 0:
        raise InputError(f"{path}:{text.count(chr(10), 0, nul) + 1}: a NUL byte; a corpus is text")
    if not text:
        raise InputError(f"{path}: an empty file; a corpus has one sentence a line")
    if not text.strip("\ufeff\r\n\t "):
        raise InputError(f"{path}: nothing but empty lines; a corpus has one sentence a line")
    return text.removeprefix("\ufeff")


def split_lines(text: str) -> list[str]:
    """Split a text into its lines, ended by LF or CR LF alone."""
    # splitlines() would also break at U+2028, U+0085 and form feeds, and misalign the two sides.
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines]


def one_line(text: str) -> str:
    """Replace line breaks, with the spaces around them, by one space."""
    if "\n" not in text and "\r" not in text:
        return text
    return " ".join(line.strip() for line in re.split(r"[\r\n]+", text)).strip()


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file."""
    return split_lines(read_text(path))


def read_aligned(*paths: Path) -> list[list[str]]:
    """Read text files that must have equally many lines."""
    texts = [read_lines(path) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{paths[0]} has {len(texts[0])} lines and {path} {len(lines)}; they must pair up"
            )
    return texts
