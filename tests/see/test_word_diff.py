"""Word-level differences as HTML."""

import pytest

from seq2see.see.word_diff import differences


@pytest.mark.parametrize(
    ("output", "reference", "shown"),
    [
        ("a b c", "a b c", "a b c"),
        ("a x c", "a b c", "a <del>b</del> <mark>x</mark> c"),
        ("a c", "a b c", "a <del>b</del> c"),
        ("b c", "a b c", "<del>a</del> b c"),
        ("a b c .", "a b c.", "a b c ."),
        ("a b c!", "a b c.", "a b c<del>.</del><mark>!</mark>"),
        ("", "a b", "<del>a b</del>"),
        ("a b", "", "<mark>a b</mark>"),
        ("A b", "a b", "<del>a</del> <mark>A</mark> b"),
        ("<i> &", "&", "<mark>&lt;i&gt;</mark> &amp;"),
        ("你好世界", "你们好世界", "你<del>们</del>好世界"),
        ("नमस्ते दुनिया", "नमस्ते संसार", "नमस्ते <del>संसार</del> <mark>दुनिया</mark>"),
    ],
)
def test_differences_are_marked_by_words(output: str, reference: str, shown: str) -> None:
    assert differences(output, reference) == shown
