"""Tables of sentence pairs: TSV, and CSV with commas or semicolons.

The cells of a TSV are taken as they are, unless their quotation marks are those of a program that
writes CSV. Each mark then belongs to a cell in quotes, where inner marks are doubled, and at least
one of these holds:

- a doubled mark occurs;
- rows have equally many columns only if cells in quotes may hold line breaks and tabs;
- all cells but numbers are in quotes;
- the cells with a comma are in quotes, and no others, as Excel writes them.

Direct speech is different: somewhere a sentence goes on after the closing mark, or holds a second
pair of marks that are not doubled.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.headers import choose, is_header, shown
from seq2see.text.lines import Pair, Tick, base_name, one_line, raw_lines, unread
from seq2see.text.watch import Watch

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
SAMPLED_ROWS = 1000  # to tell the delimiter
SAMPLED_CHARACTERS = 1 << 22  # to tell a header, and quotes from direct speech
QUOTED_CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=[\t\r\n]|\Z)')
NUMBER = re.compile(r"[-+\d.,]+")
EXCEL_HINT = re.compile(r"sep=[,;\t]\r?")  # a first line that names Excel's delimiter
COMMAS = 10  # cells with a comma that prove Excel's habit


def stream_table(path: Path, watch: Watch) -> Iterator[Pair]:
    """Yield the pairs of a TSV or, if its name ends so, of a CSV; a header is left out."""
    config = watch.config
    sampled = _open(path, config)
    index, line, cells, below = _first_rows(sampled)
    has_header = is_header(cells, config, below)
    columns = (0, 1)
    if has_header or config.columns is not None:
        columns = choose(cells, config, f"{path}:{line}")
    if sampled.quoted and sampled.delimiter == "\t":
        watch.notes.append(f"{path}: cells are quoted as in CSV; the quotes are left out")
    if has_header:
        watch.notes.append(f"{path}: line {line} is a header ({shown(cells)}); not trained on")
    # A cell too many may have shifted the others.
    widest = len(cells) if has_header or sampled.quoted else None
    sheet = replace(sampled, lines=lambda: _lines(path, watch.tick))
    for place, pair in enumerate(_pairs(sheet, columns, widest)):
        if not has_header or place != index:
            yield pair


def _lines(path: Path, tick: Tick = unread) -> Iterator[str]:
    """Yield the lines of a table, the first of a CSV without the hint for Excel."""
    lines = raw_lines(path, tick)
    first = next(lines)
    if base_name(path).lower().endswith(".csv") and EXCEL_HINT.fullmatch(first):
        first = ""
    yield first
    yield from lines


@dataclass(frozen=True)
class _Sheet:
    """A table, or its beginning: in a quoted one, a cell may be in quotes and hold line breaks."""

    path: Path
    lines: Callable[[], Iterator[str]]  # without line feeds
    delimiter: str
    quoted: bool
    spaced: bool = False  # whether a space follows each delimiter

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the first line and the cells of each row."""
        if self.quoted:
            return self._parsed()
        lines = enumerate(self.lines(), start=1)
        return ((number, line.removesuffix("\r").split(self.delimiter)) for number, line in lines)

    def _parsed(self) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(max(csv.field_size_limit(), SAMPLED_CHARACTERS))
        reader = csv.reader(
            self._csv_lines(), delimiter=self.delimiter, skipinitialspace=self.spaced, strict=True
        )
        line = 1
        try:
            for cells in reader:
                yield line, [one_line(cell) for cell in cells]
                line = reader.line_num + 1
        except csv.Error:
            rule = f"a quoted cell closes right before a {self.name} or the end of the line"
            raise InputError(
                f"{self.path}:{line}: malformed quotes; {rule}, and quotes inside it are doubled"
            ) from None

    def _csv_lines(self) -> Iterator[str]:
        """Yield lines as the standard library reads them, for which a lone CR ends one, too."""
        for line in self.lines():
            if "\r" in line:
                yield from io.StringIO(f"{line}\n", newline="")
            else:
                yield f"{line}\n"

    @property
    def name(self) -> str:
        return DELIMITERS[self.delimiter]

    def refusal(self, line: int, cells: list[str], rule: str) -> InputError:
        columns = "column" if len(cells) == 1 else "columns"
        width = f"{len(cells)} {self.name}-separated {columns}"
        return InputError(f"{self.path}:{line}: {width}, but {rule}")


def _open(path: Path, config: DataConfig) -> _Sheet:
    """Read the beginning of a table, and tell its delimiter and whether cells are in quotes."""
    sample = _beginning(path)
    plain = _Sheet(path, lambda: iter(sample), "\t", quoted=False)
    if base_name(path).lower().endswith(".csv"):
        sheets = [replace(plain, delimiter=delimiter, quoted=True) for delimiter in DELIMITERS]
        likeliest = max(sheets, key=lambda sheet: _fit(sheet, config))
        if likeliest.delimiter != "\t":
            after = [cell for cells in _sample(likeliest) for cell in cells[1:]]
            return replace(likeliest, spaced=all(cell.startswith(" ") for cell in after))
    quoted = replace(plain, quoted=True)
    return quoted if _is_quoted(plain, quoted, config) else plain


def _beginning(path: Path) -> list[str]:
    """Read lines up to a number of characters; a cell in quotes is not cut."""
    lines: list[str] = []
    characters = marks = 0
    for line in _lines(path):
        if characters > SAMPLED_CHARACTERS and marks % 2 == 0:
            break
        lines.append(line)
        characters += len(line)
        marks += line.count('"')
        if characters > 2 * SAMPLED_CHARACTERS:
            break  # marks that never close are no quotes
    return lines


def _sample(sheet: _Sheet) -> list[list[str]]:
    """Parse the first rows, up to one with malformed quotes."""
    rows = []
    try:
        for _, cells in islice(sheet.rows(), SAMPLED_ROWS):
            rows.append(cells)
    except InputError:
        pass
    return [cells for cells in rows if cells]


def _fit(sheet: _Sheet, config: DataConfig) -> tuple[bool, int, int]:
    """Measure how well a delimiter explains a CSV.

    It makes a header of the first row, or else most rows as wide as the first; if two do, fewer
    spaces follow it.
    """
    rows = _sample(sheet)
    if not rows or len(rows[0]) == 1:
        return False, 0, 0
    as_wide = sum(len(cells) == len(rows[0]) for cells in rows)
    spaces = sum(cell.startswith(" ") for cells in rows for cell in cells)
    return is_header(rows[0], config), as_wide, -spaces


def _is_quoted(plain: _Sheet, quoted: _Sheet, config: DataConfig) -> bool:
    """Tell whether the quotation marks of a TSV are those of a program that writes CSV."""
    held = _held_in_quotes("\n".join(plain.lines()))
    if any('""' in content for content in held):
        return True
    if not held:
        return False
    rows = [cells for _, cells in plain.rows() if any(cells)]
    widths = {len(cells) for cells in rows}
    if len(widths) > 1 and len({len(cells) for _, cells in quoted.rows() if any(cells)}) == 1:
        return True
    if is_header(rows[0], config):
        rows = rows[1:]
    cells = [cell for cells in rows for cell in cells if cell.strip()]
    in_quotes = [cell for cell in cells if cell.startswith('"')]
    words = [cell for cell in cells if not NUMBER.fullmatch(cell)]
    with_comma = [cell for cell in cells if "," in cell]
    return in_quotes == words or (in_quotes == with_comma and len(in_quotes) >= COMMAS)


def _held_in_quotes(text: str) -> list[str]:
    """List the contents of the cells in quotes; none if a mark stands anywhere else."""
    contents = []
    start = text.find('"')
    while start >= 0:
        cell = QUOTED_CELL.match(text, start)
        begins = start == 0 or text[start - 1] in "\t\n"
        if cell is None or not begins:
            return []
        contents.append(cell[1])
        start = text.find('"', cell.end())
    return contents


def _first_rows(sheet: _Sheet) -> tuple[int, int, list[str], list[str]]:
    """Return index, line and cells of the first row with text, and the cells of the next."""
    rows = enumerate(sheet.rows())
    filled = ((index, *row) for index, row in rows if any(map(str.strip, row[1])))
    first = next(filled, None)
    if first is None:
        raise InputError(f"{sheet.path}: every cell is empty")
    second = next(filled, None)
    return *first, second[2] if second else []


def _pairs(sheet: _Sheet, columns: tuple[int, int], widest: int | None) -> Iterator[Pair]:
    """Take two columns of each row; a blank row is an empty pair."""
    source, target = columns
    needed = max(columns) + 1
    for line, cells in sheet.rows():
        if widest is not None and any(map(str.strip, cells[widest:])):
            rule = f"the first row has {widest}; a cell with a {sheet.name} needs quotes"
            raise sheet.refusal(line, cells, rule)
        if len(cells) >= needed:
            yield cells[source], cells[target]
        elif any(map(str.strip, cells)):
            rule = f"data.columns = {list(columns)} needs {needed}"
            hint = "; name a comma-separated file .csv" if _is_misnamed(sheet, cells) else ""
            raise sheet.refusal(line, cells, rule + hint)
        else:
            yield "", ""


def _is_misnamed(sheet: _Sheet, cells: list[str]) -> bool:
    return sheet.name == "tab" and len(cells) == 1 and ("," in cells[0] or ";" in cells[0])
