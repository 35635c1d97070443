"""Masks as tables: what is open is the mask of the layers, and what is closed says why."""

from pathlib import Path

import matplotlib.image
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.layers.masks import (
    causal_mask,
    combine,
    order_mask,
    packed_mask,
    padding_mask,
    prefix_mask,
    window_mask,
)
from seq2see.see import figures, masks

EXAMPLE = masks.example("Dogs bark . Cats sleep !", padding=2, reach=1, prefix=3)
IDS = torch.tensor([[7, 8, 9, 7, 2, 2]])
EXPECTED = {
    "padding": padding_mask(IDS, 2)[0, 0].expand(6, 6),
    "causal": causal_mask(6),
    "window": window_mask(6, 1),
    "prefix": prefix_mask(3, 6),
    "order": order_mask(torch.tensor(EXAMPLE.order)),
    "packed": packed_mask(torch.tensor([[0, 0, 0, 1, 1, 1]]))[0, 0],
}


@pytest.mark.parametrize("kind", [*masks.KINDS, "packed+causal+padding", "prefix+causal", "order"])
def test_what_is_open_is_the_mask_and_what_is_closed_says_why(kind: str) -> None:
    (table,) = masks.tables([kind], EXAMPLE)
    expected = combine(*(EXPECTED[part] for part in kind.split("+")))
    assert expected is not None
    assert torch.equal(torch.tensor([[why == "" for why in row] for row in table.closed]), expected)
    assert all(letter in masks.REASONS for row in table.closed for why in row for letter in why)


def test_a_place_that_is_closed_twice_shows_both_reasons_in_the_order_of_the_kind() -> None:
    for kind, both in (("causal+padding", "fp"), ("padding+causal", "pf"), ("prefix+causal", "f")):
        (table,) = masks.tables([kind], EXAMPLE)
        assert table.closed[0][5] == both
    (table,) = masks.tables(["causal+padding"], EXAMPLE)
    assert [row[4] for row in table.closed] == ["fp", "fp", "fp", "fp", "p", "p"]
    assert table.words[3:] == ["Cats", "<blank>", "<blank>"]


@given(length=st.integers(1, 12), reach=st.integers(0, 4), draw=st.data())
def test_any_sentence_has_every_mask(length: int, reach: int, draw: st.DataObject) -> None:
    padding, prefix = (draw.draw(st.integers(0, length)) for _ in range(2))
    shown = masks.example(" ".join("w" * length), padding, reach, prefix)
    for table in masks.tables(masks.KINDS, shown):
        assert len(table.words) == len(table.closed) == len(table.closed[0]) == length
    assert sorted(shown.order) == list(range(length))


def test_a_table_in_the_terminal() -> None:
    lines = masks.lines(masks.tables(["window+causal"], masks.example("你好 a b", None, 1, None)))
    assert lines == [
        "Rows look at columns.",
        "",
        "window+causal: open where each of them is",
        "      你好  a  b",
        "你好  ■     f  wf",
        "a     ■     ■  f",
        "b     w     ■  ■",
        "",
        "■ may look",
        "f the future",
        "w too far away",
        "A place with two letters is closed for both reasons.",
    ]
    assert "two letters" not in "".join(masks.lines(masks.tables(["causal"], EXAMPLE)))


def test_the_picture_has_a_panel_for_each_kind_and_a_letter_in_each_closed_place(
    tmp_path: Path,
) -> None:
    found = masks.tables([*masks.KINDS, "packed+causal"], EXAMPLE)
    figure = masks.draw(found)
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [table.kind for table in found]
    for axes, table in zip(shown, found, strict=True):
        assert [text.get_text() for text in axes.texts] == [
            why for row in table.closed for why in row
        ]
    figures.save(figure, tmp_path / "a.png")
    assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.05


@pytest.mark.parametrize(
    ("text", "padding", "prefix", "says"),
    [
        ("", None, None, "TEXT has 0 words; a table has 1 to 40"),
        ("w " * 41, None, None, "TEXT has 41 words; a table has 1 to 40"),
        ("a b", 3, None, "--padding 3 must be at most 2, the number of words"),
        ("a b", None, 4, "--prefix 4 must be at most 2, the number of words"),
    ],
)
def test_an_example_that_cannot_be_is_refused(
    text: str, padding: int | None, prefix: int | None, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        masks.example(text, padding, 1, prefix)


@pytest.mark.parametrize("kind", ["causla", "", "causal+", "causal+future"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(
        InputError, match="is not one of padding, causal, window, prefix, order, packed, or several"
    ):
        masks.tables([kind], EXAMPLE)
