"""Recipes as TOML: reading, overriding with --set, writing, and one-line error messages."""

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

# Mutually exclusive keys: one given by --set replaces the others of its group.
EXCLUSIVE = (
    ("train.steps", "train.epochs", "train.minutes"),
    ("train.batch_tokens", "train.batch_sentences"),
    ("data.corpus", "data.train", "data.mix"),
)


def shipped() -> list[str]:
    """List the names of the recipes that ship with the package."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("seq2see.recipes").iterdir()
        if entry.name.endswith(".toml")
    )


def read(path: str | Path) -> dict[str, Any]:
    """Read a TOML file, or a shipped recipe by its bare name."""
    try:
        if str(path) in shipped() and not Path(path).is_file():
            text = (resources.files("seq2see.recipes") / f"{path}.toml").read_text(encoding="utf-8")
        else:
            text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        near = " or ".join(_near_recipes(Path(path)))
        known = f"give a path or a shipped one: {', '.join(shipped())}"
        hint = f"did you mean {near}?" if near else known
        raise InputError(f"{path}: no such recipe; {hint}") from None
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


def _near_recipes(path: Path) -> list[str]:
    """List recipes of a similar name: files beside the path, and shipped ones."""
    beside = {file.stem: str(file) for file in sorted(path.parent.glob("*.toml"))}
    names = {name: name for name in shipped()} | beside
    near = difflib.get_close_matches(path.stem, names, cutoff=0.75)
    near = near or [name for name in names if path.stem and name.startswith(path.stem)]
    return [names[name] for name in near]


def override(table: dict[str, Any], given: str) -> None:
    """Set `section.key=value` in the tables, and remove the keys that it excludes."""
    key, equals, text = given.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise InputError(f"--set {given!r}: write it as section.key=value, like train.lr=0.002")
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string: --set model.norm=post
    keys = table.setdefault(section, {})
    if not isinstance(keys, dict):
        raise InputError(f"--set {given!r}: {section!r} is not a table of the recipe")
    for group in EXCLUSIVE:
        if key.strip() in group:
            for excluded in group:
                keys.pop(excluded.partition(".")[2], None)
    keys[name] = value


def first_problem(error: ValidationError, known: Sequence[str]) -> str:
    """Describe the first error of a recipe; `known` lists all keys, each table before its keys."""
    problems = error.errors(include_url=False)
    # Unknown keys first: a misspelt key often also counts as missing.
    unknown = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    problem = (unknown or problems)[0]
    types = ("str", "list[str]", "dict[str,union[str,list[str]]]")  # pydantic's, not keys
    path = [str(part) for part in problem["loc"] if part not in types]
    key = ".".join(path)
    if unknown:
        nearest = " or ".join(_nearest(path, known))
        siblings = ", ".join(_siblings(path, known))
        hint = f"did you mean {nearest}?" if nearest else f"known: {siblings}"
        return f"unknown key {key}; {hint}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    return f"{key} = {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _nearest(path: list[str], known: Sequence[str]) -> list[str]:
    """Guess the key meant: a misspelt or abridged sibling, or one of that name elsewhere."""
    name = path[-1]
    siblings = {key.rpartition(".")[2]: key for key in _siblings(path, known)}
    if misspelt := difflib.get_close_matches(name, siblings, n=1, cutoff=0.7):
        return [siblings[misspelt[0]]]
    words = set(name.split("_"))
    longer = [key for sibling, key in siblings.items() if words <= set(sibling.split("_"))]
    return longer or [key for key in known if key.rpartition(".")[2] == name]


def _siblings(path: list[str], known: Sequence[str]) -> list[str]:
    table = ".".join(path[:-1])
    return [key for key in known if key.rpartition(".")[0] == table]


def written(sections: dict[str, Any]) -> str:
    """Format tables as TOML; keys outside any table come first."""
    tables = {name: value for name, value in sections.items() if isinstance(value, dict)}
    top = {name: value for name, value in sections.items() if name not in tables}
    blocks = [_rows(top)] if top else []
    blocks += [f"[{name}]\n{_rows(table)}" for name, table in tables.items()]
    return "\n".join(blocks)


def _rows(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value)


def _escaped(character: str) -> str:
    if ord(character) < 32 or ord(character) == 127:
        return f"\\u{ord(character):04x}"
    return f"\\{character}" if character in '"\\' else character
