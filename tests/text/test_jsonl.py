"""JSONL: the keys that hold the two sides, and lines that are refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.jsonl import stream_jsonl
from seq2see.text.reading import Table
from seq2see.text.watch import Watch

PAIRS = [("Hi.", "Hallo!"), ("Run!", "Lauf!")]


def read(folder: Path, *lines: Any, **keys: Any) -> Table:
    path = folder / "t.jsonl"
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(rows), encoding="utf-8")
    recipe = {"source": "en", "target": "de", "train": "t", **keys}
    watch = Watch(DataConfig.model_validate(recipe))
    return Table(list(stream_jsonl(path, watch)), watch.notes)


@pytest.mark.parametrize("first", [{}, {"id": 7}, {"id": "x", "score": 0.5}])
@pytest.mark.parametrize("nested", [False, True])
def test_language_codes_are_keys(first: dict[str, Any], nested: bool, tmp_path: Path) -> None:
    texts = [{"de": german, "en": english} for english, german in PAIRS]
    rows = [first | ({"translation": text} if nested else text) for text in texts]
    assert read(tmp_path, *rows) == Table(PAIRS, [])


def test_other_keys(tmp_path: Path) -> None:
    rows = [{"German": german, "english": english} for english, german in PAIRS]
    note = f"{tmp_path / 't.jsonl'}: en is read from 'english' and de from 'German'"
    assert read(tmp_path, *rows) == Table(PAIRS, [note])
    rows = [{"a": german, "b": english} for english, german in PAIRS]
    assert read(tmp_path, *rows, columns=["b", "a"]) == Table(PAIRS, [])


def test_a_byte_order_mark_gzip_blank_lines_null_and_line_breaks(tmp_path: Path) -> None:
    rows = ['{"en": "a\\n b", "de": "c\\u2028d"}', "", ' {"en": null, "de": "x"} ', ""]
    path = tmp_path / "t.jsonl"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\r\n".join(rows).encode()))
    watch = Watch(DataConfig(source="en", target="de", train="t"))
    assert list(stream_jsonl(path, watch)) == [("a b", "c\u2028d"), ("", ""), ("", "x")]
    assert read(tmp_path, "\u2028", "\u3000") == Table([("", "")] * 2, [])


GOOD = {"en": "Hi.", "de": "Hallo!"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"en": "Hi.", "de": "Hal', "not JSON: Unterminated string starting at; each line is"),
        ("[", "not JSON: Expecting value; each line is one object"),
        ("[" * 100_000, "not JSON: "),
        ("9" * 5000, "not JSON: "),
        ('["Hi.", "Hallo!"]', '["Hi.", "Hallo!"] is not an object; each line is one object'),
        ({"en": "Hi."}, "no key 'de' among en"),
        ({"en": "Hi.", "de": 3}, "'de' is 3, not a string"),
        ({"en": ["Hi.", "Hello."], "de": "x"}, '\'en\' is ["Hi.", "Hello."], not a string'),
        ({"en": "Hi.\0", "de": "x"}, "'en' holds U+0000, which is not text"),
        ({"en": "Hi.", "de": "\ud83d"}, "'de' holds U+D83D, which is not text"),
    ],
    ids=range(10),
)
def test_a_bad_line_is_named(line: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, GOOD, line)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 't.jsonl'}:2: {says}")
    assert "\n" not in message and len(message) < 300


def test_keys_that_are_not_there(tmp_path: Path) -> None:
    rule = "name two in data.columns"
    with pytest.raises(InputError, match=rf"t.jsonl:1: none of a, b stands for .*; {rule}"):
        read(tmp_path, {"a": "Hi.", "b": "Hallo!"})
    with pytest.raises(InputError, match=r"no 'englisch' among english, german; did you mean"):
        read(tmp_path, {"english": "a", "german": "b"}, columns=["englisch", "german"])
    with pytest.raises(InputError, match=r"\[0, 1\]: JSON objects have no numbered columns"):
        read(tmp_path, GOOD, columns=[0, 1])
