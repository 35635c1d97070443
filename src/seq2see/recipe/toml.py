"""Recipes as TOML: read, overridden by --set, written; and the one line that says what is wrong with one."""

import difflib
import math
import os
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seq2see.errors import InputError

# A recipe holds one key of each group, so that one given by --set takes the other's place.
RIVALS = (
    ("train.steps", "train.epochs", "train.minutes"),
    ("train.batch_tokens", "train.batch_sentences"),
    ("data.corpus", "data.train"),
)


def shipped() -> list[str]:
    """The names of the recipes that come with the package."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("seq2see.recipes").iterdir()
        if entry.name.endswith(".toml")
    )


def read(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file, or of a shipped recipe by its bare name."""
    try:
        if str(path) in shipped() and not Path(path).is_file():
            text = (resources.files("seq2see.recipes") / f"{path}.toml").read_text(encoding="utf-8")
        else:
            text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        known = ", ".join(shipped())
        raise InputError(
            f"{path}: no such recipe; a path, or one that is shipped: {known}"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot read the recipe: {os.strerror(error.errno or 0)}"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start}; a recipe is a TOML text file"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def override(table: dict[str, Any], given: str) -> None:
    """Put `section.key=value` into the tables, in the place of its rivals."""
    key, equals, text = given.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise InputError(f"--set {given!r}: write it as section.key=value, like train.lr=0.002")
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string: --set model.norm=post
    rows = table.setdefault(section, {})
    if not isinstance(rows, dict):
        raise InputError(f"--set {given!r}: {section!r} is not a table of the recipe")
    for rivals in RIVALS:
        if key.strip() in rivals:
            for rival in rivals:
                rows.pop(rival.partition(".")[2], None)
    rows[name] = value


def first_problem(error: ValidationError, known: Sequence[str]) -> str:
    """What to tell of a refused recipe; `known` are all keys there are, a table before its own."""
    # An unknown key is often the misspelt one that then counts as missing: it comes first.
    problem = min(
        error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden"
    )
    place = [
        str(part)
        for part in problem["loc"]
        if part not in ("str", "list[str]", "dict[str,union[str,list[str]]]")
    ]
    key = ".".join(place)
    if problem["type"] == "extra_forbidden":
        nearest = _nearest(place, known)
        hint = (
            f"did you mean {nearest}?"
            if nearest
            else f"known: {', '.join(_siblings(place, known))}"
        )
        return f"unknown key {key}; {hint}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    return f"{key} = {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _nearest(place: list[str], known: Sequence[str]) -> str | None:
    """The known key that an unknown one stands for: misspelt, or else in the wrong table."""
    for keys, cutoff in ((_siblings(place, known), 0.6), (known, 0.8)):
        names = {key.rpartition(".")[2]: key for key in keys}
        for name in difflib.get_close_matches(place[-1], names, n=1, cutoff=cutoff):
            return names[name]
    return None


def _siblings(place: list[str], known: Sequence[str]) -> list[str]:
    prefix = ".".join(place[:-1])
    return [key for key in known if key.rpartition(".")[0] == prefix]


def written(sections: dict[str, Any]) -> str:
    """Tables as TOML; what belongs to none stands before the first."""
    alone = [
        f"{key} = {_toml(value)}" for key, value in sections.items() if not isinstance(value, dict)
    ]
    lines = [*alone, ""] if alone else []
    for name, section in sections.items():
        if isinstance(section, dict):
            lines += [
                f"[{name}]",
                *(f"{key} = {_toml(value)}" for key, value in section.items()),
                "",
            ]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else f"\\{c}" if c in '"\\' else c
            for c in value
        )
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value)
