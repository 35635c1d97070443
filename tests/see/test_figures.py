"""Files of figures: PNG, SVG and HTML, light and dark, and what cannot be written."""

import re
from pathlib import Path

import matplotlib.image
import pytest
import torch
from matplotlib.figure import Figure

from seq2see.errors import InputError
from seq2see.see import attention, figures
from seq2see.see.numbers import Numbers


def figure(title: str = "$a$ <eins> & x") -> Figure:
    weights = torch.tensor([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    return attention.with_gold(weights, {(2, 0)}, ["a", "b", "c"], ["x", "y"], title)


def test_heads_are_named_alike_and_counted_from_1() -> None:
    assert figures.layer_and_head(1, 2) == "layer 2, head 3"
    for name, title in (
        ("encoder.0.self", "encoder self-attention, layer 1, head 3"),
        ("decoder.11.self", "decoder self-attention, layer 12, head 3"),
        ("decoder.1.cross", "cross-attention, layer 2, head 3"),
    ):
        assert figures.head_title(name, 2) == title


@pytest.mark.parametrize("dark", [False, True])
def test_png_and_svg_are_light_or_dark(tmp_path: Path, dark: bool) -> None:
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    figures.save(figure(), png, dark)
    figures.save(figure(), svg, dark)
    pixels = matplotlib.image.imread(png)
    assert pixels.std() > 0.01
    assert (pixels[0, 0, :3].max() < 0.2) == dark
    assert "target word" in re.sub(r"<[^>]*>", "", svg.read_text(encoding="utf-8"))


def test_an_svg_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        figures.save(figure(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_page_has_both_drawings_and_the_numbers_and_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    figures.save(figure(), path)
    html = path.read_text(encoding="utf-8")
    assert html.count("<svg") == 2 and html.count("<table>") == 2
    assert '<th scope="row">x</th><td>0.25</td><td>0.75</td><td>0</td>' in html
    assert "&lt;eins&gt; &amp; x" in html and "<eins>" not in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len({*ids})
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', html)
    assert used and {*used} <= {*ids}
    loaded = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert all(target.startswith(("#", "data:image/png")) for target in loaded)
    assert "default-src 'none'" in html and "<script" not in html


def test_a_page_shows_the_given_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    figures.save(figure(), path, numbers=[Numbers("caption", ["head"], [["<cell>"]])])
    html = path.read_text(encoding="utf-8")
    assert "<caption>caption</caption>" in html and "&lt;cell&gt;" in html
    assert html.count("<table>") == 1


def test_pages_are_numbered_files_or_one_page(tmp_path: Path) -> None:
    three = [figure("one"), figure("two"), figure("three")]
    paths = figures.save_pages(three, tmp_path / "a.svg")
    assert [path.name for path in paths] == ["a-1.svg", "a-2.svg", "a-3.svg"]
    assert "two" in paths[1].read_text(encoding="utf-8")
    assert figures.save_pages(three[:1], tmp_path / "b.svg") == [tmp_path / "b.svg"]
    assert figures.save_pages(three, tmp_path / "a.html") == [tmp_path / "a.html"]
    assert (tmp_path / "a.html").read_text(encoding="utf-8").count("<svg") == 6


@pytest.mark.parametrize(
    ("name", "rule"),
    [("a.txt", "must end in .png, .svg or .html"), ("no/a.png", "there is no folder")],
)
def test_an_impossible_path_is_refused(tmp_path: Path, name: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        figures.check(tmp_path / name)


def test_a_page_is_not_dark_by_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--dark: .*a\.html is light or dark as its reader's"):
        figures.check(tmp_path / "a.html", dark=True)


def test_a_path_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=r"folder\.png: cannot write: Is a directory"):
        figures.check(tmp_path / "folder.png")
    figures.check(tmp_path / "a.png")
    monkeypatch.setattr(figures.os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(InputError, match=r"a\.png: cannot write: Permission denied"):
        figures.check(tmp_path / "a.png")


def test_a_large_figure_gets_a_lower_resolution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_PIXELS", 300)
    figures.save(figure(), tmp_path / "a.png")
    assert max(matplotlib.image.imread(tmp_path / "a.png").shape) <= 300
