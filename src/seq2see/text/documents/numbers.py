"""Numbers as languages write them: 1,000.50 in English, 1.000,50 in German, 1 000,50 in French."""

import re

from seq2see.text.documents.sentences import base

POINT_COMMA = "az bs ca da de el es eu fo gl hr id is it mk nl pt ro sl sq sr tr vi"
SPACE_COMMA = "be bg cs eo et fi fr hu hy ka kk ky lt lv nb nn no pl ru sk sv uk uz"
TIME = re.compile(r"(?:[01]?\d|2[0-4])\.[0-5]\d")
SPACES = "\u00a0\u202f"


def notations(number: str, source: str, target: str) -> tuple[str, ...]:
    """Return the ways to write a number of the source in the target language, as it is first.

    Digits stay digits. Only a plain number has a second notation: 3.5.2024, 10-20 and 14:30 do not.
    But the point in a time, as in 14.30, may become a colon.
    """
    group, point = _marks(source)
    other_group, other_point = _marks(target)
    plain = rf"(\d{{1,3}}(?:[{group}]\d{{3}})+|\d+)(?:[{point}](\d+))?"
    match = re.fullmatch(f"([-−+]?){plain}", number)
    if match is None and group == "." and TIME.fullmatch(number):
        return (number, number.replace(".", ":"))
    if match is None or (group, point) == (other_group, other_point):
        return (number,)
    sign, whole, decimals = match.groups()
    digits = re.sub(r"\D", "", whole)
    wholes = [digits]
    if digits != whole:
        wholes = [re.sub(r"\D", mark, whole) for mark in other_group] + wholes
    tail = "" if decimals is None else other_point + decimals
    return tuple(dict.fromkeys([number, *(f"{sign}{whole}{tail}" for whole in wholes)]))


def _marks(language: str) -> tuple[str, str]:
    """The marks that may group thousands in a language, and its decimal mark."""
    if base(language) in POINT_COMMA.split():
        return ".", ","
    if base(language) in SPACE_COMMA.split():
        return SPACES, ","
    return ",", "."
