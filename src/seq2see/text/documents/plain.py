"""Plain text: lines, list marks and blocks of code."""

import re
from collections.abc import Iterator

from seq2see.text.documents.pieces import Piece

# Kept as they are: marks of headings, quotations and lists, white space and separators of columns.
START = re.compile(r"\s*+(?:(?:[>#*+•‣◦·–—-]++|\[[ xX]\]|[0-9]{1,4}[.)]|[A-Za-z][)])(?:\s++|$))*+")
COLUMNS = re.compile(r"(\t++|\s{3,}+|\s*+\|\s*+)")
FENCE = re.compile(r"\s*(```+(?![^\n]*`)|~~~+)(?P<about>[^\n]*)")


def passages(text: str) -> Iterator[str | list[Piece]]:
    """Yield a text in parts: strings to keep, and the pieces of passages to translate."""
    fence = ""
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line)
        if fence or match:
            if match and not fence:
                fence = match[1]
            elif match and match[1].startswith(fence) and not match["about"].strip():
                fence = ""
            yield line
            continue
        start = START.match(line)
        assert start is not None  # it can be empty
        yield start.group()
        for part in COLUMNS.split(line[start.end() :]):
            yield [Piece.plain(part)]
