"""Fonts: characters that Matplotlib's own lacks are drawn by another, or named in one line."""

from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from seq2see.see import attention, figures, fonts


def figure(title: str) -> Figure:
    return attention.with_gold(torch.rand(2, 2), set(), ["a", "😀"], ["x", "é\u200d"], title)


def test_a_font_that_has_the_character_is_added() -> None:
    drawn = figure("the script letter 𝓐")  # not in DejaVu Sans; in STIX, which Matplotlib brings
    assert fonts.complete(drawn) == set()
    (title,) = (text for text in drawn.findobj(Text) if "𝓐" in text.get_text())
    assert len(title.get_fontfamily()) == 2
    others = {tuple(text.get_fontfamily()) for text in drawn.findobj(Text) if text is not title}
    assert {len(families) for families in others} == {1}


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_character_that_no_font_has_is_named_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    monkeypatch.setattr(fonts, "_installed", dict)
    path = tmp_path / f"a.{ending}"
    figures.save(figure("你好 漢 🎉"), path)
    packages = "on Debian, apt install fonts-noto-cjk fonts-symbola brings them"
    line = f"{path}: no installed font has 你 好 漢 🎉; boxes stand for them ({packages})\n"
    # A viewer of SVG has fonts of its own.
    assert capsys.readouterr() == ("", line if ending == "png" else "")
    assert path.stat().st_size > 1000


def test_plain_text_needs_no_other_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_installed", None)
    assert fonts.complete(figure("Straße → √d")) == set()


@pytest.mark.parametrize(
    ("characters", "package"),
    [("漢ア한。", "fonts-noto-cjk"), ("😀", "fonts-symbola"), ("אबग", "fonts-noto-core")],
)
def test_the_package_of_a_script_is_named(characters: str, package: str) -> None:
    for character in characters:
        assert f"apt install {package} brings" in fonts.warning({character})
