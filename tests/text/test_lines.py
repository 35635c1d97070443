"""Text files: what ends a line, and the files that are refused."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.text.lines import read_lines


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@given(
    lines=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r")), min_size=1
    )
)
def test_only_line_feeds_end_lines(
    lines: list[str], ending: str, last: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [*lines, "a\u2028b\x85c\x0cd\x1ee"]
    content = (ending.join(lines) + (ending if last else "")).encode()
    path = tmp_path_factory.mktemp("lines") / "text"
    for stored in (content, b"\xef\xbb\xbf" + content, gzip.compress(content)):
        path.write_bytes(stored)
        assert read_lines(path) == [lines[0].removeprefix("\ufeff"), *lines[1:]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.txt: an empty file"),
        (gzip.compress(b"", mtime=0), "x.txt: an empty file"),
        (b"\n\r\n \n", "x.txt: nothing but empty lines"),
        (b"ja\nn\xfcr\n", "x.txt:2: byte 0xfc is not UTF-8"),
        ("ja\nnein\n".encode("utf-16"), "x.txt:1: byte 0xff is not UTF-8"),
        (b"ja\nne\0in\n", "x.txt:2: a NUL byte"),
        (gzip.compress(b"ja\nnein\n" * 99, mtime=0)[:-12], "x.txt: a truncated or corrupt gzip"),
        (
            gzip.compress(b"ja\nnein\n" * 99, mtime=0)[:12] + b"\xff" * 30,
            "x.txt: a truncated or corrupt gzip",
        ),
        (gzip.compress(b"ja\n", mtime=0) + b"junk", "x.txt: a truncated or corrupt gzip"),
        (None, "x.txt: cannot read: No such file"),
    ],
)
def test_a_bad_file_is_named(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_lines(tmp_path / "x.txt")
    assert "\n" not in str(caught.value)
