"""Parquet: a column for each language, or one of structs as Hugging Face datasets write it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.text.headers import choose, shown
from seq2see.text.jsonl import NESTED, NOT_TEXT, note_on_keys
from seq2see.text.lines import Pair, one_line
from seq2see.text.watch import Watch

ROWS = 8192  # in memory at a time


def stream_parquet(path: Path, watch: Watch) -> Iterator[Pair]:
    """Yield the pairs of a Parquet file, some rows at a time."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs a library: pip install pyarrow") from None
    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
            schema = file.schema_arrow
            nested = NESTED in schema.names and pyarrow.types.is_struct(schema.field(NESTED).type)
            fields = list(schema.field(NESTED).type) if nested else list(schema)
            keys = _keys([field.name for field in fields], path, watch)
            _check_types(fields, keys, path)
            columns = [f"{NESTED}.{key}" if nested else key for key in keys]
            yield from _rows(file, columns, keys, path, watch)
    except pyarrow.ArrowInvalid as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"{path}: not a Parquet file, or a damaged one: {problem}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror or error}") from None


def _keys(names: list[str], path: Path, watch: Watch) -> list[str]:
    """The names of the two columns to read."""
    numbers = watch.config.columns
    if numbers is not None and isinstance(numbers[0], int) and max(map(int, numbers)) >= len(names):
        given = f"data.columns = {list(numbers)}"
        raise InputError(f"{path}: {given}: there are {len(names)} columns: {shown(names)}")
    keys = [names[index] for index in choose(names, watch.config, str(path))]
    note_on_keys(keys, path, watch)
    return keys


def _check_types(fields: list[Any], keys: list[str], path: Path) -> None:
    for field in fields:
        if field.name in keys and str(field.type) not in ("string", "large_string", "string_view"):
            raise InputError(f"{path}: column {field.name!r} holds {field.type}, not strings")


def _rows(
    file: Any, columns: list[str], keys: list[str], path: Path, watch: Watch
) -> Iterator[Pair]:
    bytes_per_row = path.stat().st_size / max(1, file.metadata.num_rows)
    number = 0
    for batch in file.iter_batches(batch_size=ROWS, columns=columns):
        if columns != keys:  # one column of structs
            batch = type(batch).from_struct_array(batch.column(0))
        sides = [batch.column(key).to_pylist() for key in keys]
        for source, target in zip(*sides, strict=True):
            number += 1
            yield _text(source, keys[0], path, number), _text(target, keys[1], path, number)
        watch.tick(round(bytes_per_row * batch.num_rows))


def _text(text: str | None, key: str, path: Path, row: int) -> str:
    """Return the text of a cell; null is an empty one."""
    if text is None:
        return ""
    if broken := NOT_TEXT.search(text):
        where = f"{path}: row {row}: {key!r}"
        raise InputError(f"{where} holds U+{ord(broken[0]):04X}, which is not text")
    return one_line(text)
