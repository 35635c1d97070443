"""Mask tables: open cells are those of the layers' masks; masked cells say why."""

from pathlib import Path

import matplotlib.image
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.layers.mask_patterns import order_mask, packed_mask, prefix_mask, window_mask
from seq2see.layers.masks import causal_mask, combine, padding_mask
from seq2see.see import figures, masks

EXAMPLE = masks.parse("Dogs bark . Cats sleep !", padding=2, reach=1, prefix=3)
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
def test_open_cells_are_the_mask_and_masked_cells_say_why(kind: str) -> None:
    (table,) = masks.tables([kind], EXAMPLE)
    expected = combine(*(EXPECTED[part] for part in kind.split("+")))
    assert expected is not None
    assert torch.equal(
        torch.tensor([[letters == "" for letters in row] for row in table.reasons]), expected
    )
    assert all(letter in masks.REASONS for row in table.reasons for cell in row for letter in cell)


def test_a_cell_masked_twice_shows_both_reasons_in_the_order_of_the_kind() -> None:
    for kind, both in (("causal+padding", "fp"), ("padding+causal", "pf"), ("prefix+causal", "f")):
        (table,) = masks.tables([kind], EXAMPLE)
        assert table.reasons[0][5] == both
    (table,) = masks.tables(["causal+padding"], EXAMPLE)
    assert [row[4] for row in table.reasons] == ["fp", "fp", "fp", "fp", "p", "p"]
    assert table.words[3:] == ["Cats", "<blank>", "<blank>"]


@given(length=st.integers(1, 12), reach=st.integers(0, 4), draw=st.data())
def test_any_sentence_has_every_mask(length: int, reach: int, draw: st.DataObject) -> None:
    padding, prefix = (draw.draw(st.integers(0, length)) for _ in range(2))
    example = masks.parse(" ".join("w" * length), padding, reach, prefix)
    for table in masks.tables(masks.KINDS, example):
        assert len(table.words) == len(table.reasons) == len(table.reasons[0]) == length
    assert sorted(example.order) == list(range(length))


def test_a_table_in_the_terminal() -> None:
    report = masks.report(masks.tables(["window+causal"], masks.parse("你好 a b", None, 1, None)))
    assert report == [
        "Rows are query positions, columns are key positions.",
        "",
        "window+causal: open where every mask is open",
        "      你好  a  b",
        "你好  ■     f  wf",
        "a     ■     ■  f",
        "b     w     ■  ■",
        "",
        "■ may attend",
        "f later position",
        "w outside the window",
        "A cell with several letters is masked for each of these reasons.",
    ]
    assert "several letters" not in "".join(masks.report(masks.tables(["causal"], EXAMPLE)))


def test_the_figure_has_a_panel_for_each_kind_and_the_letters_of_each_cell(
    tmp_path: Path,
) -> None:
    tables = masks.tables([*masks.KINDS, "packed+causal"], EXAMPLE)
    figure = masks.draw(tables)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in panels] == [table.kind for table in tables]
    for axes, table in zip(panels, tables, strict=True):
        assert [text.get_text() for text in axes.texts] == [
            letters for row in table.reasons for letters in row
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
def test_an_impossible_example_is_refused(
    text: str, padding: int | None, prefix: int | None, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        masks.parse(text, padding, 1, prefix)


@pytest.mark.parametrize("kind", ["causla", "", "causal+", "causal+future"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(
        InputError, match="is not one of padding, causal, window, prefix, order, packed, or several"
    ):
        masks.tables([kind], EXAMPLE)
