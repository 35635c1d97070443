"""TSV and CSV: delimiters, quotes, headers, and rows that are refused."""

import csv
import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.lines import read_lines
from seq2see.text.reading import Table
from seq2see.text.tables import stream_table
from seq2see.text.watch import Watch

TATOEBA = Path(os.environ.get("SEQ2SEE_DATA", "")) / "tatoeba" / "deu-eng.tsv.gz"
Pair = tuple[str, str]

PLAIN = [("Hi.", "Hallo!"), ("Yes, please.", "Ja, bitte."), ("Well; no.", "Na ja; nein.")]
SPEECH = [  # as Tatoeba has it
    ('"Look," she said.', '"Schau!" sagte sie.'),
    ('"Says who?" "Says me."', "„Wer sagt das?“ — „Ich sage das!“"),
    ('"Who is it?" "It\'s me."', '"Wer ist da?" "Ich bin\'s."'),
]
WHOLE = [('"Trust me."', '"Vertrau mir."'), ('"Why?"', "„Warum?“")]  # marks only at both ends


def read(folder: Path, name: str, text: str | bytes, **keys: Any) -> Table:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    recipe = {"source": "en", "target": "de", "train": "t", **keys}
    watch = Watch(DataConfig.model_validate(recipe))
    return Table(list(stream_table(path, watch)), watch.notes)


def refusal(folder: Path, name: str, text: str | bytes, **keys: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, name, text, **keys)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{folder}{os.sep}")


def tsv(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def written(rows: list[Any], **keys: Any) -> str:
    """CSV as the standard library writes it, and pandas with it."""
    file = io.StringIO(newline="")
    csv.writer(file, **keys).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("header", [[], [("English", "German")]])
def test_csv_as_programs_write_it(
    delimiter: str, quoting: Any, header: list[Pair], tmp_path: Path
) -> None:
    pairs = PLAIN + SPEECH + WHOLE
    text = written(header + pairs, delimiter=delimiter, quoting=quoting)
    for stored in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        for name in ("t.csv", "T.CSV.gz"):
            assert read(tmp_path, name, stored).pairs == pairs
    notes = [f"{tmp_path / 't.csv'}: line 1 is a header (English, German); not trained on"]
    assert read(tmp_path, "t.csv", text).notes[-1:] == notes[: len(header)] or delimiter == "\t"


sentences = st.text(st.sampled_from("ab ,;\"'.\t"), min_size=1).filter(str.strip)


@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1), delimiter=st.sampled_from(",;"))
def test_a_header_settles_the_delimiter(
    pairs: list[Pair], delimiter: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = written([("en", "de"), *pairs], delimiter=delimiter)
    assert read(tmp_path_factory.getbasetemp(), "t.csv", text).pairs == pairs


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (
            "Hi.;Hallo!\nYes, please.;Ja, bitte.\n",
            [("Hi.", "Hallo!"), ("Yes, please.", "Ja, bitte.")],
        ),
        ("Yes, please.;Ja, bitte.\n", [("Yes, please.", "Ja, bitte.")]),
        ("Yes; please.,Ja; bitte.\n", [("Yes; please.", "Ja; bitte.")]),
        ('"Yes; please.","Ja; bitte."\n', [("Yes; please.", "Ja; bitte.")]),
        ('"Yes, please.";"Ja, bitte."\r\n', [("Yes, please.", "Ja, bitte.")]),
        ("Yes, please.\tJa, bitte.\n", [("Yes, please.", "Ja, bitte.")]),
    ],
)
def test_commas_and_semicolons_inside_sentences(
    text: str, pairs: list[Pair], tmp_path: Path
) -> None:
    assert read(tmp_path, "t.csv", text) == Table(pairs, [])


@pytest.mark.parametrize("header", ["", "en, de\n", '"en", "de"\n'])
def test_a_space_after_each_delimiter(header: str, tmp_path: Path) -> None:
    table = read(tmp_path, "t.csv", header + '"Hi, you.", "Hallo, du!"\nRun!, Lauf!\n')
    assert table.pairs == [("Hi, you.", "Hallo, du!"), ("Run!", "Lauf!")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_that_tells_excel_the_delimiter_is_no_row(end: str, tmp_path: Path) -> None:
    text = end.join(["sep=;", "en;de", "Hi, you.;Hallo, du!"])
    table = read(tmp_path, "t.csv", text)
    assert [pair for pair in table.pairs if any(pair)] == [("Hi, you.", "Hallo, du!")]
    note = f"{tmp_path / 't.csv'}: line 2 is a header (en, de); not trained on"
    assert table.notes == [note]


def test_line_breaks_in_cells_become_spaces(tmp_path: Path) -> None:
    text = 'en,de\r\n"Hi,\r\n  you","Hallo\n\ndu"\r\n\r\n"a\u2028b",c\r\n'
    table = read(tmp_path, "t.csv", text)
    assert table.pairs == [("Hi, you", "Hallo du"), ("", ""), ("a\u2028b", "c")]
    message = refusal(tmp_path, "t.csv", text + "x\r\n")
    assert message == "t.csv:8: 1 comma-separated column, but data.columns = [0, 1] needs 2"


def test_a_header_may_be_in_any_order_and_beside_an_index(tmp_path: Path) -> None:
    text = "\ten\tde\n0\tHi.\tHallo!\n1\tRun!\tLauf!\n"  # pandas' to_csv(sep="\t")
    for name in ("t.tsv", "t.txt", "t"):
        table = read(tmp_path, name, text)
        assert table.pairs == [("Hi.", "Hallo!"), ("Run!", "Lauf!")]
        header = 'line 1 is a header ("", en, de); not trained on'
        assert table.notes == [f"{tmp_path / name}: {header}"]
    assert read(tmp_path, "t.tsv", text, source="de", target="en").pairs[0] == ("Hallo!", "Hi.")
    assert read(tmp_path, "t.tsv", text, columns=[2, 1]).pairs[0] == ("Hallo!", "Hi.")
    text = text.replace("\ten\tde", "\n\tA\tB")
    assert read(tmp_path, "t.tsv", text, columns=["b", "a"]).pairs[1] == ("Hallo!", "Hi.")


def test_columns_of_language_codes_are_no_header(tmp_path: Path) -> None:
    text = "eng\tHi.\tdeu\tHallo!\neng\tRun!\tdeu\tLauf!\n"
    pairs = [("Hi.", "Hallo!"), ("Run!", "Lauf!")]
    assert read(tmp_path, "t.tsv", text, columns=[1, 3]) == Table(pairs, [])


@pytest.mark.parametrize(
    "pairs",
    [PLAIN, PLAIN + SPEECH, PLAIN + WHOLE, SPEECH, WHOLE, [*PLAIN, ('"Yes, sir."', '"Ja, Sir."')]],
)
def test_direct_speech_keeps_its_marks(pairs: list[Pair], tmp_path: Path) -> None:
    assert read(tmp_path, "t.tsv", tsv(*pairs)) == Table(pairs, [])
    assert read(tmp_path, "t.tsv", tsv(*pairs).replace("\n", "\r\n")) == Table(pairs, [])


def test_a_quotation_over_two_lines_keeps_its_marks(tmp_path: Path) -> None:
    pairs = [('"I am tired.', "„Ich bin müde."), ('I go home."', "Ich gehe heim.“")]
    assert read(tmp_path, "t.tsv", tsv(*pairs)) == Table(pairs, [])
    pairs = [("Hi.", '"Hallo'), ('Bye."', "Tschüss")]
    assert read(tmp_path, "t.tsv", tsv(*pairs)) == Table(pairs, [])


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (written(PLAIN + SPEECH, delimiter="\t"), PLAIN + SPEECH),
        (written(PLAIN, delimiter="\t", quoting=csv.QUOTE_ALL), PLAIN),
        (
            written([("Hi.", "Hallo\ndu"), ("a", "b")], delimiter="\t"),
            [("Hi.", "Hallo du"), ("a", "b")],
        ),
        ('en\tde\n"Hi."\t"Hallo!"\n', [("Hi.", "Hallo!")]),  # the header alone is not in quotes
        (  # Excel
            tsv(*[('"Yes, please."', '"Ja, bitte."'), ("Hi.", "Hallo!")] * 5),
            [("Yes, please.", "Ja, bitte."), ("Hi.", "Hallo!")] * 5,
        ),
    ],
)
def test_quotes_of_a_program_are_left_out(text: str, pairs: list[Pair], tmp_path: Path) -> None:
    table = read(tmp_path, "t.tsv", text)
    assert table.pairs == pairs
    note = f"{tmp_path / 't.tsv'}: cells are quoted as in CSV; the quotes are left out"
    assert table.notes[0] == note


@pytest.mark.skipif(not TATOEBA.exists(), reason="Tatoeba is not under SEQ2SEE_DATA")
def test_quotation_marks_of_tatoeba(tmp_path: Path) -> None:
    lines = read_lines(TATOEBA)
    pairs = [tuple(line.split("\t")) for line in lines if '"' in line]
    assert len(pairs) == 539
    assert read(tmp_path, "t.tsv", tsv(*pairs)) == Table(pairs, [])
    assert read(tmp_path, "t.tsv", written(pairs, delimiter="\t")).pairs == pairs
    assert read(tmp_path, "t.csv", written(pairs, delimiter=";")).pairs == pairs
    assert read(tmp_path, "t.csv", written(pairs)).pairs == pairs


@pytest.mark.parametrize(
    ("name", "text", "keys", "says"),
    [
        (
            "t.tsv",
            "a\tb\tc\n",
            {"columns": [0, 3]},
            "t.tsv:1: 3 tab-separated columns, but data.columns = [0, 3] needs 4",
        ),
        (
            "t.tsv",
            "Hi.\tHallo!\nRun!\n",
            {},
            "t.tsv:2: 1 tab-separated column, but data.columns = [0, 1] needs 2",
        ),
        (
            "t.txt",
            "Hi.,Hallo!\n",
            {},
            "t.txt:1: 1 tab-separated column, but data.columns = [0, 1] needs 2; "
            "name a comma-separated file .csv",
        ),
        (
            "t.csv",
            "Hi.\nRun!\n",
            {},
            "t.csv:1: 1 comma-separated column, but data.columns = [0, 1] needs 2",
        ),
        (
            "t.csv",
            "en,de\nHi.,Hallo!\nYes, please.,Ja\n",
            {},
            "t.csv:3: 3 comma-separated columns, but the first row has 2; "
            "a cell with a comma needs quotes",
        ),
        (  # as R writes row names
            "t.tsv",
            '"en"\t"de"\n"1"\t"Hi."\t"Hallo!"\n',
            {},
            "t.tsv:2: 3 tab-separated columns, but the first row has 2; "
            "a cell with a tab needs quotes",
        ),
        (
            "t.csv",
            'en;de\nHi.;Hallo!\n"Look," she said.;Schau!\n',
            {},
            "t.csv:3: malformed quotes; a quoted cell closes right before a semicolon or the end "
            "of the line, and quotes inside it are doubled",
        ),
        (
            "t.csv",
            'en;de\nHi.;"Hallo!\nRun!;Lauf!\n',
            {},
            "t.csv:2: malformed quotes; a quoted cell closes right before a semicolon or the end "
            "of the line, and quotes inside it are doubled",
        ),
        (
            "t.tsv",
            "English\tGerman\nHi.\tHallo!\n",
            {"columns": ["englsh", "german"]},
            "t.tsv:1: data.columns: no 'englsh' among English, German; did you mean 'English'?",
        ),
        (
            "t.tsv",
            "\nen\tfr\nHi.\tSalut!\n",
            {},
            "t.tsv:2: none of en, fr stands for data.target = 'de'; name two in data.columns",
        ),
        (
            "t.csv",
            b"en,de\nHi.,n\xfcr\n",
            {},
            "t.csv:2: byte 0xfc is not UTF-8; a corpus is UTF-8 text",
        ),
        ("t.csv", b"en,de\nHi.,\0\n", {}, "t.csv:2: a NUL byte; a corpus is text"),
        ("t.csv", b"", {}, "t.csv: an empty file; a corpus has one sentence a line"),
        ("t.csv", b",,\n,,\n", {}, "t.csv: every cell is empty"),
    ],
    ids=range(14),
)
def test_a_bad_row_is_named(
    name: str, text: str | bytes, keys: dict[str, Any], says: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, name, text, **keys) == says


def test_ragged_rows(tmp_path: Path) -> None:
    # Excel leaves out empty cells at the end of rows, and a TSV may have comments there.
    assert read(tmp_path, "t.csv", "en,de,note\nHi.,Hallo!\nYes.,Ja.,,\n").pairs == [
        ("Hi.", "Hallo!"),
        ("Yes.", "Ja."),
    ]
    assert read(tmp_path, "t.tsv", "Hi.\tHallo!\nYes.\tJa.\tby Tom\n").pairs[1] == ("Yes.", "Ja.")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_huge_cells(name: str, tmp_path: Path) -> None:
    long = 'a "long" word, ' * 20_000  # more than the csv module's limit
    delimiter = "," if name == "t.csv" else "\t"
    assert read(tmp_path, name, written([(long, "x")], delimiter=delimiter)).pairs == [(long, "x")]
    spaces = " " * 300_000 + "a\n"
    assert read(tmp_path, name, written([(spaces, '"')], delimiter=delimiter)).pairs == [("a", '"')]
