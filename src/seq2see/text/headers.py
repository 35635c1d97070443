"""Headers of tables: when the first row is one, and which columns its names stand for.

A first row is a header if data.columns names two of its cells, if one cell names data.source and
another data.target, or if every cell is a usual name of a column and two of them differ.

A language is named by a code (en, eng, en-US) or a name (English, anglais), also as in text_en; a
side by a word such as source or translation. Two such names never translate each other, so a pair
of sentences is not mistaken for a header: "German → Deutsch" names one language twice. Nor is a row
of which only these names recur in the next one: "eng, Hi., deu, Hallo!".
"""

import difflib
import re
import unicodedata
from collections.abc import Sequence

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.languages import CODES

MEANINGS = {
    "source": "source src original input text sentence sentence1 text1 quelle ausgangstext 原文",
    "target": "target tgt trg translation output sentence2 text2 ziel zieltext übersetzung 译文",
    "number": "id index idx nr no number line row",
    "other": "label score split domain url date comment notes",
}
WORDS = {word: meaning for meaning, words in MEANINGS.items() for word in words.split()}
FILLERS = {"text", "sentence", "segment", "translation"}  # beside a name: text_en, German sentence
REGIONAL = re.compile(r"([a-z]{2,3})[-_](?:[A-Z]{2}|[A-Z][a-z]{3})")  # en-US, zh_Hans
LONGEST_CODE = 3


def is_header(cells: Sequence[str], config: DataConfig, below: Sequence[str] = ()) -> bool:
    """Tell whether the first row of a table names its columns; `below` is the second."""
    given = config.columns is not None and isinstance(config.columns[0], str)
    if given and match(cells, config) is not None:
        return True
    sides = [_columns_for(side, cells, config) for side in ("source", "target")]
    if all(sides):
        both = enumerate(zip(cells, below, strict=False))
        recurring = {index for index, (cell, next_cell) in both if cell == next_cell}
        names_recur = all(recurring.intersection(columns) for columns in sides)
        return not names_recur or len(recurring) == len(cells)
    names = [cell.strip() for cell in cells if cell.strip()]
    meanings = {_meaning(name) for name in names}
    # Short codes are words, too: "it → es" is English to German, not Italian to Spanish.
    telling = any(sides) or any(len(name) > LONGEST_CODE for name in names)
    return None not in meanings and len(meanings) > 1 and telling


def match(names: Sequence[str], config: DataConfig) -> tuple[int, int] | None:
    """Find the columns of source and target among the names; None unless each has just one."""
    if config.columns is None:
        sides = [_columns_for(side, names, config) for side in ("source", "target")]
    else:
        sides = [_columns_called(column, names) for column in config.columns]
    sources, targets = sides
    return (sources[0], targets[0]) if len(sources) == len(targets) == 1 else None


def choose(names: Sequence[str], config: DataConfig, where: str) -> tuple[int, int]:
    """Find the columns of source and target, or raise InputError with the names there are."""
    if (columns := match(names, config)) is not None:
        return columns
    listed = shown(names)
    for column in config.columns or ():
        count = len(_columns_called(column, names))
        if count != 1:
            near = difflib.get_close_matches(str(column), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near and not count else ""
            problem = f"{count or 'no'} {column!r} among {listed}"
            raise InputError(f"{where}: data.columns: {problem}{hint}")
    for side in ("source", "target"):
        count = len(_columns_for(side, names, config))
        if count != 1:
            stand = f"{count} of {listed} stand" if count else f"none of {listed} stands"
            language = f"data.{side} = {getattr(config, side)!r}"
            raise InputError(f"{where}: {stand} for {language}; name two in data.columns")
    raise AssertionError("each side has one column")


def shown(names: Sequence[str], longest: int = 100) -> str:
    """List names for a message."""
    listed = ", ".join(" ".join(name.split()) or '""' for name in names)
    return listed if len(listed) <= longest else f"{listed[:longest]}…"


def _columns_called(column: int | str, names: Sequence[str]) -> list[int]:
    if isinstance(column, int):
        return [column]
    wanted = column.strip().casefold()
    return [index for index, name in enumerate(names) if name.strip().casefold() == wanted]


def _columns_for(side: str, names: Sequence[str], config: DataConfig) -> list[int]:
    """List the columns that name a side's code exactly, or else its language, or else the side."""
    code: str = getattr(config, side)
    if exact := _columns_called(code, names):
        return exact
    meanings = list(enumerate(map(_meaning, names)))
    language = _meaning(code)
    by_language: list[int] = []
    if language is not None and _meaning(config.source) != _meaning(config.target):
        by_language = [index for index, meaning in meanings if meaning == language]
    return by_language or [index for index, meaning in meanings if meaning == side]


def _meaning(name: str) -> str | None:
    """The language, the side or the kind of column that a name stands for."""
    if regional := REGIONAL.fullmatch(name.strip()):
        name = regional[1]
    words = re.split(r"[\s_./:()-]+", unicodedata.normalize("NFKC", name).casefold())
    words = [word for word in words if word]
    if len(words) > 1:
        words = [word for word in words if word not in FILLERS]
    if len(words) != 1:
        return None
    return WORDS.get(words[0]) or CODES.get(words[0])
