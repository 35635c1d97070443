"""JSONL: one object per line, with a key for each language."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.text.headers import choose, shown
from seq2see.text.lines import Pair, one_line, stream_lines
from seq2see.text.watch import Watch

NESTED = "translation"  # {"translation": {"en": …, "de": …}}, as Hugging Face datasets write it
ENDINGS = (".jsonl", ".ndjson", ".json")
NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of characters


def stream_jsonl(path: Path, watch: Watch) -> Iterator[Pair]:
    """Yield the pairs of a JSONL file; a blank line is an empty pair."""
    config = watch.config
    if config.columns is not None and isinstance(config.columns[0], int):
        given = f"data.columns = {list(config.columns)}"
        raise InputError(f"{path}: {given}: JSON objects have no numbered columns; name two keys")
    keys: list[str] = []
    for number, line in enumerate(stream_lines(path, watch.tick), start=1):
        if not line.strip():
            yield "", ""
            continue
        where = f"{path}:{number}"
        texts = _texts(line, where)
        if not keys:
            names = list(texts)
            keys = [names[index] for index in choose(names, config, where)]
            note_on_keys(keys, path, watch)
        yield _text(texts, keys[0], where), _text(texts, keys[1], where)


def note_on_keys(keys: list[str], path: Path, watch: Watch) -> None:
    """Remark which keys are read, unless these are the languages or given."""
    config = watch.config
    if config.columns is None and keys != [config.source, config.target]:
        source = f"{config.source} is read from {keys[0]!r}"
        watch.notes.append(f"{path}: {source} and {config.target} from {keys[1]!r}")


def _texts(line: str, where: str) -> dict[str, Any]:
    """Parse a line, and return the object that holds the texts."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", str(error))
        raise InputError(f"{where}: not JSON: {problem}; each line is one object") from None
    if not isinstance(entry, dict):
        value = shown([json.dumps(entry)])
        raise InputError(f"{where}: {value} is not an object; each line is one object")
    nested = entry.get(NESTED)
    return nested if isinstance(nested, dict) else entry


def _text(texts: dict[str, Any], key: str, where: str) -> str:
    """Return the text of a key; null is an empty one."""
    if key not in texts:
        raise InputError(f"{where}: no key {key!r} among {shown(list(texts))}")
    text = texts[key]
    if text is None:
        return ""
    if not isinstance(text, str):
        raise InputError(f"{where}: {key!r} is {shown([json.dumps(text)])}, not a string")
    if broken := NOT_TEXT.search(text):
        raise InputError(f"{where}: {key!r} holds U+{ord(broken[0]):04X}, which is not text")
    return one_line(text)
