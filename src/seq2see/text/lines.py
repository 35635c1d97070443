"""Text files, plain, gzip or zstd: streams of their lines, checked while read."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from seq2see.errors import InputError

Pair = tuple[str, str]  # a source and its target
Tick = Callable[[int], None]  # is told the bytes of a file that have been read since

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how such files begin
COMPRESSED = (".gz", ".zst")
BLOCK = 1 << 18  # bytes that are read at a time
BLANKS = "\ufeff\r\n\t "


def unread(count: int) -> None:
    """Ignore the bytes that were read."""


def base_name(path: Path) -> str:
    """The name of a file without the ending of its compression."""
    is_compressed = path.suffix.lower() in COMPRESSED
    return path.stem if is_compressed else path.name


def raw_lines(path: Path, tick: Tick = unread) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line feeds and without a byte order mark."""
    # splitlines() would also break at U+2028, U+0085 and form feeds, and misalign the two sides.
    number = 0
    empty = blank = True
    rest = b""
    for block in _blocks(path, tick):
        empty = empty and not block
        whole, line_feed, rest = (rest + block).rpartition(b"\n")
        if not line_feed:
            continue
        lines = _decoded(whole, path, number).split("\n")
        if number == 0:
            lines[0] = lines[0].removeprefix("\ufeff")
        blank = blank and not any(line.strip(BLANKS) for line in lines)
        number += len(lines)
        yield from lines
    if empty:
        raise InputError(f"{path}: an empty file; a corpus has one sentence a line")
    if rest:
        last = _decoded(rest, path, number)
        last = last if number else last.removeprefix("\ufeff")
        blank = blank and not last.strip(BLANKS)
    if blank:
        raise InputError(f"{path}: nothing but empty lines; a corpus has one sentence a line")
    if rest:
        yield last


def _decoded(content: bytes, path: Path, before: int) -> str:
    """Decode the lines that follow a number of others."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = before + content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise InputError(
            f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; a corpus is UTF-8 text"
        ) from None
    if (nul := text.find("\0")) >= 0:
        line = before + text.count("\n", 0, nul) + 1
        raise InputError(f"{path}:{line}: a NUL byte; a corpus is text")
    return text


def _blocks(path: Path, tick: Tick) -> Iterator[bytes]:
    """Yield the content of a file in blocks, decompressed."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(ZSTD))
            file.seek(0)
            kind = "gzip" if beginning.startswith(GZIP) else "zstd"
            content: BinaryIO | gzip.GzipFile = file
            if beginning.startswith(GZIP):
                content = gzip.GzipFile(fileobj=file)
            blocks = iter(lambda: content.read(BLOCK), b"")
            if beginning == ZSTD:
                blocks = _expanded(path, blocks)
            before = 0
            for block in blocks:
                tick(file.tell() - before)
                before = file.tell()
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: a truncated or corrupt {kind} file: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None


def _expanded(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress the frames of a zstd file."""
    try:
        import zstandard
    except ImportError:
        raise InputError(f"{path}: reading zstd needs a library: pip install zstandard") from None
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    try:
        for block in blocks:
            left = block
            while left:
                if frame.eof:
                    frame = decompressor.decompressobj()
                yield frame.decompress(left)
                left = frame.unused_data
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None
    if not frame.eof:
        raise EOFError("it ends inside a frame")


def stream_lines(path: Path, tick: Tick = unread) -> Iterator[str]:
    """Yield the lines of a text file, ended by LF or CR LF alone."""
    return (line.removesuffix("\r") for line in raw_lines(path, tick))


def stream_aligned(*paths: Path, tick: Tick = unread) -> Iterator[tuple[str, ...]]:
    """Yield the lines of text files side by side; the files must have equally many."""
    streams = [stream_lines(path, tick) for path in paths]
    for number, texts in enumerate(zip_longest(*streams)):
        if None not in texts:
            yield texts
            continue
        pairs = zip(texts, streams, strict=True)
        counts = [number + (text is not None) + sum(1 for _ in stream) for text, stream in pairs]
        place = next(place for place, count in enumerate(counts) if count != counts[0])
        first = f"{paths[0]} has {counts[0]} lines"
        raise InputError(f"{first} and {paths[place]} {counts[place]}; they must pair up")


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file."""
    return list(stream_lines(path))


def read_aligned(*paths: Path) -> list[list[str]]:
    """Read text files that must have equally many lines."""
    return [list(lines) for lines in zip(*stream_aligned(*paths), strict=True)]


def one_line(text: str) -> str:
    """Replace line breaks, with the spaces around them, by one space."""
    if "\n" not in text and "\r" not in text:
        return text
    return " ".join(line.strip() for line in re.split(r"[\r\n]+", text)).strip()
