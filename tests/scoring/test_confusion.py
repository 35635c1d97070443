"""Confusion matrices: counted in the order of the labels, and shown as a table."""

import pytest

from seq2see.scoring.confusion import confusion_of, table


def test_guesses_are_counted_by_right_label_in_the_order_of_the_labels() -> None:
    right = ["zh", "en", "zh", "zh", "en"]
    guessed = ["zh", "zh", "en", "zh", "zh"]
    confusion = confusion_of(right, guessed, ["zh", "en", "de"])
    assert confusion == {"zh": {"zh": 2, "en": 1}, "en": {"zh": 2}}
    assert list(confusion) == ["zh", "en"] and list(confusion["zh"]) == ["zh", "en"]
    assert confusion_of([], [], ["zh"]) == {}
    with pytest.raises(ValueError, match="zip"):
        confusion_of(["zh"], [], ["zh"])


def test_columns_bear_short_labels_or_the_numbers_of_long_ones() -> None:
    assert table({}) == []
    assert table({"de": {"de": 12, "en": 3}, "en": {"en": 5}}) == [
        "right ↓ said →  de  en",
        "de              12   3",
        "en               ·   5",
    ]
    assert table({"upper": {"lower": 1}}) == [
        "right ↓ said →  1  2",
        "1 upper         ·  1",
        "2 lower         ·  ·",
    ]
