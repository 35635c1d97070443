"""Fonts of a figure: Matplotlib's own, and installed ones for the characters that it lacks."""

from contextlib import suppress
from functools import cache

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

# Debian's packages that have the letters of other scripts, by the first and last of these.
PACKAGES = {
    "fonts-noto-cjk": [
        ("\u2e80", "\ua4cf"),
        ("\uac00", "\ud7ff"),
        ("\uf900", "\ufaff"),
        ("\uff00", "\uffef"),
        ("\U00020000", "\U0003ffff"),
    ],
    "fonts-symbola": [("\U0001f000", "\U0001faff")],
}
OTHER_PACKAGE = "fonts-noto-core"
PLACEHOLDERS = "Last Resort High-Efficiency"  # Matplotlib's font of boxes for all characters


def complete(figure: Figure) -> set[str]:
    """Add installed fonts to the texts that need them; return the characters that no font has."""
    lacking: dict[Text, set[str]] = {}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        characters = {character for character in text.get_text() if character.isprintable()}
        characters -= _characters(font_manager.findfont(text.get_fontproperties()))
        if characters:
            lacking[text] = characters
    families, missing = _families(set().union(*lacking.values()))
    for text in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *families])
    return missing


def _families(missing: set[str]) -> tuple[list[str], set[str]]:
    """Choose installed fonts, the one with the most of the characters first; say what all lack."""
    families: list[str] = []
    fonts = _installed() if missing else {}
    region = _region(missing)
    while fonts and missing:
        best = max(fonts, key=lambda name: (len(missing & fonts[name]), name.endswith(region)))
        if not missing & fonts[best]:
            break
        families.append(best)
        missing = missing - fonts[best]
    return families, missing


def _region(characters: set[str]) -> str:
    """Suffix of the names of suitable fonts; Han characters look different in each country."""
    if any("\u3040" <= character <= "\u30ff" for character in characters):
        return " JP"
    if any("\uac00" <= character <= "\ud7ff" for character in characters):
        return " KR"
    return " SC"


def _installed() -> dict[str, frozenset[str]]:
    """Characters of each installed font, in its regular weight where it has one, by name."""
    _add_new()
    upright = [font for font in font_manager.fontManager.ttflist if font.style == "normal"]
    regular_last = sorted(upright, key=lambda font: (font.name, font.weight == 400))
    return {f.name: _characters(f.fname) for f in regular_last if f.name != PLACEHOLDERS}


def _add_new() -> None:
    """Add the fonts that were installed after Matplotlib had made its list of them."""
    listed = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted({*font_manager.findSystemFonts()} - listed):
        with suppress(RuntimeError, OSError, ValueError):  # one that Matplotlib cannot read
            font_manager.fontManager.addfont(path)


@cache
def _characters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # a kind of font that Matplotlib cannot read
        return frozenset()


def warning(missing: set[str]) -> str:
    """Name the characters that no font has, and the Debian packages that bring them."""
    packages = sorted({_package(character) for character in missing})
    characters = " ".join(sorted(missing))
    install = f"on Debian, apt install {' '.join(packages)} brings them"
    return f"no installed font has {characters}; boxes stand for them ({install})"


def _package(character: str) -> str:
    for package, ranges in PACKAGES.items():
        if any(first <= character <= last for first, last in ranges):
            return package
    return OTHER_PACKAGE
