"""Byte pieces as parts of characters."""

import pytest

from seq2see.see.figures import shown
from seq2see.text.byte_pieces import labels, surfaces

DRAGON = ["<0xE9>", "<0xBE>", "<0x98>"]  # 龘


@pytest.mark.parametrize(
    ("pieces", "texts", "names"),
    [
        (["▁a", *DRAGON, "b"], ["▁a", "", "", "龘", "b"], ["▁a", "龘₁", "龘₂", "龘₃", "b"]),
        ([*DRAGON, *DRAGON], ["", "", "龘"] * 2, ["龘₁", "龘₂", "龘₃"] * 2),
        (["<0x41>", "<0xC3>", "<0xA9>"], ["A", "", "é"], ["A", "é₁", "é₂"]),
        (["<0xE9>", "x"], ["\ufffd", "x"], ["<0xE9>", "x"]),
        (["<0xBE>", *DRAGON], ["\ufffd", "", "", "龘"], ["<0xBE>", "龘₁", "龘₂", "龘₃"]),
        (["<0xE9>", *DRAGON], ["", "\ufffd", "", "龘"], ["<0xE9>", "龘₁", "龘₂", "龘₃"]),
        (["<0x00>", "<s>"], ["\0", "<s>"], ["<0x00>", "<s>"]),
        (["a", "<0xE9>", "<0xBE>"], ["a", "", ""], ["a", "<0xE9>", "<0xBE>"]),
        ([], [], []),
    ],
)
def test_bytes_are_shown_as_their_character(
    pieces: list[str], texts: list[str], names: list[str]
) -> None:
    assert surfaces(pieces) == texts
    assert labels(pieces) == names
    assert shown(pieces) == [name.replace("▁", "·") for name in names]
