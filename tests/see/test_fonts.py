"""Fonts: characters that Matplotlib's own lacks are drawn by another, or named in one line."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
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


def drawn(text: str) -> np.ndarray:
    """Draw a text with the fonts that it needs; a character without a glyph is an error."""
    page = Figure(figsize=(3, 1))
    page.text(0.1, 0.3, text, fontsize=30)
    missing = fonts.complete(page)
    if missing:
        pytest.skip(fonts.warning(missing))
    canvas = FigureCanvasAgg(page)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., 0] < 128


@pytest.mark.parametrize("text", ["翻译", "ほんやく", "번역", "ترجمة", "अनुवाद", "תרגום", "😀"])
def test_the_letters_of_every_script_are_drawn(text: str) -> None:
    dark = drawn(text)
    assert dark.any()
    letters = sorted({*text})
    assert len(letters) == 1 or (dark != drawn(text.replace(letters[0], letters[-1]))).any()


def test_arabic_letters_are_joined() -> None:
    joined = drawn("ترجمة").sum()
    assert joined != drawn("\u200c".join("ترجمة")).sum()  # with marks that keep letters apart


def test_han_letters_are_those_of_the_language() -> None:
    names = {f"Noto Sans CJK {end}": frozenset("漢字かな한국") for end in ("JP", "KR", "SC")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fonts, "_installed", lambda: names)
        assert fonts._families({*"漢字"}) == (["Noto Sans CJK SC"], set())
        assert fonts._families({*"漢かな"}) == (["Noto Sans CJK JP"], set())
        assert fonts._families({*"漢한국"}) == (["Noto Sans CJK KR"], set())


def test_a_font_installed_after_matplotlib_has_listed_them_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stix = [font for font in font_manager.fontManager.ttflist if "STIX" in font.name]
    others = [font for font in font_manager.fontManager.ttflist if font not in stix]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", others)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [font.fname for font in stix])
    assert fonts.complete(figure("the script letter 𝓐")) == set()
