"""Streams of pairs: compression, Parquet, and shards by pattern."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text import corpora
from seq2see.text.lines import read_lines
from seq2see.text.reading import PairStream, Table, read_pairs

zstandard = pytest.importorskip("zstandard")
parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")


def config(**keys: Any) -> DataConfig:
    return DataConfig.model_validate({"source": "de", "target": "en", "train": "t", **keys})


def refusal(paths: Any, folder: Path, **keys: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_pairs(paths, config(**keys), folder)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{folder}/")


def test_zstd_with_one_frame_or_several(tmp_path: Path) -> None:
    text = "".join(f"Zeile {n}\n" for n in range(50_000)).encode()
    half = len(text) // 2
    frames = zstandard.compress(text[:half]) + zstandard.compress(text[half:])
    for content in (zstandard.compress(text), frames):
        (tmp_path / "a.zst").write_bytes(content)
        assert read_lines(tmp_path / "a.zst") == text.decode().splitlines()
    (tmp_path / "t.tsv.zst").write_bytes(zstandard.compress(b"eins\tone\n"))
    assert read_pairs("t.tsv.zst", config(), tmp_path).pairs == [("eins", "one")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            zstandard.compress(b"ja\n" * 999)[:-3],
            "a truncated or corrupt zstd file: it ends inside",
        ),
        (zstandard.compress(b"ja\n" * 999)[:9] + b"\xff" * 30, "a truncated or corrupt zstd file"),
        (zstandard.compress(b"ja\n") + b"junk", "a truncated or corrupt zstd file"),
        (zstandard.compress(b""), "an empty file"),
        (zstandard.compress(b"a\nb\xfc\n"), "byte 0xfc is not UTF-8"),
    ],
)
def test_a_bad_zstd_file_is_named(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.zst").write_bytes(content)
    with pytest.raises(InputError, match=rf"x.zst(:2)?: {says}"):
        read_lines(tmp_path / "x.zst")


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.zst").write_bytes(zstandard.compress(b"a\tb\n"))
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    for name in ("zstandard", "pyarrow"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    says = "reading zstd needs a library: pip install zstandard"
    assert refusal("x.zst", tmp_path) == f"x.zst: {says}"
    says = "reading Parquet needs a library: pip install pyarrow"
    assert refusal("x.parquet", tmp_path) == f"x.parquet: {says}"


def write_parquet(path: Path, **columns: Any) -> None:
    parquet.write_table(pyarrow.table(columns), path, row_group_size=3)


def test_parquet_by_columns_and_by_structs(tmp_path: Path) -> None:
    german = [f"Satz {n}" for n in range(8)]
    english = [f"line\n {n}" for n in range(7)] + [None]
    expected = [*((f"Satz {n}", f"line {n}") for n in range(7)), ("Satz 7", "")]
    write_parquet(tmp_path / "a.parquet", id=[*range(8)], en=english, de=german)
    assert read_pairs("a.parquet", config(), tmp_path) == Table(expected, [])
    structs = [{"en": one, "de": other} for one, other in zip(english, german, strict=True)]
    write_parquet(tmp_path / "b.parquet", translation=structs)
    assert read_pairs("b.parquet", config(), tmp_path) == Table(expected, [])
    write_parquet(tmp_path / "c.parquet", source=german, target=english)
    note = f"{tmp_path / 'c.parquet'}: de is read from 'source' and en from 'target'"
    assert read_pairs("c.parquet", config(), tmp_path) == Table(expected, [note])
    assert read_pairs("a.parquet", config(columns=[2, 1]), tmp_path) == Table(expected, [note][:0])


@pytest.mark.parametrize(
    ("columns", "keys", "says"),
    [
        ({"fr": ["a"], "en": ["b"]}, {}, "none of fr, en stands for data.source = 'de'; name two"),
        ({"de": ["a"], "en": [7]}, {}, "column 'en' holds int64, not strings"),
        ({"de": ["a"], "en": ["b"]}, {"columns": [0, 2]}, "data.columns = [0, 2]: there are 2 col"),
        ({"de": ["a", "b\0"], "en": ["b", "c"]}, {}, "row 2: 'de' holds U+0000, which is not text"),
    ],
)
def test_bad_columns_of_parquet(columns: Any, keys: Any, says: str, tmp_path: Path) -> None:
    write_parquet(tmp_path / "x.parquet", **columns)
    assert refusal("x.parquet", tmp_path, **keys).startswith(f"x.parquet: {says}")


def test_what_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 this is not what it says PAR1")
    says = "x.parquet: not a Parquet file, or a damaged one:"
    assert refusal("x.parquet", tmp_path).startswith(says)
    assert refusal("none.parquet", tmp_path).startswith("none.parquet: no such file; paths are")


def test_shards_by_pattern(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        rows = "".join(f"s{number} {n}\tt{number} {n}\n" for n in range(number))
        (tmp_path / f"{number:02d}.tsv.gz").write_bytes(gzip.compress(f"de\ten\n{rows}".encode()))
    (tmp_path / "03.jsonl").write_text('{"de": "x", "en": "y"}')
    stream = PairStream("*.tsv.gz", config(), tmp_path)
    expected = [
        (f"s{number} {n}", f"t{number} {n}") for number in (1, 2, 10) for n in range(number)
    ]
    assert [*stream] == expected == [*stream]
    assert [note.removeprefix(f"{tmp_path}/") for note in stream.notes] == [
        f"{number:02d}.tsv.gz: line 1 is a header (de, en); not trained on" for number in (1, 2, 10)
    ]
    assert len(read_pairs("0*", config(), tmp_path).pairs) == 4
    assert refusal("*.csv", tmp_path).startswith(
        "*.csv: no file matches this pattern; paths are relative"
    )
    corpus = corpora.load(config(train="*.tsv.gz", hold_out=2), tmp_path)
    assert len(corpus.train.pairs) == 9 and len(corpus.val.pairs) == 2
    (tmp_path / "11.tsv").write_text("only one column\n")
    assert refusal("*", tmp_path).startswith("11.tsv:1: 1 tab-separated column, but data.columns")


def test_aligned_shards_pair_up_by_name(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.de").write_text(f"s{number}\n")
        (tmp_path / f"{number}.en").write_text(f"t{number}\n")
    pairs = read_pairs(["*.de", "*.en"], config(), tmp_path).pairs
    assert pairs == [(f"s{number}", f"t{number}") for number in range(3)]
    (tmp_path / "3.de").write_text("s3\n")
    assert refusal(["*.de", "*.en"], tmp_path) == "4 files match *.de and 3 *.en; they must pair up"


def test_remarks_on_many_shards_are_few(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.tsv").write_text("de\ten\na\tb\n")
    notes = read_pairs("*.tsv", config(), tmp_path).notes
    assert len(notes) == 4 and notes[-1] == "and 6 more remarks like these"


def test_a_file_that_changes_between_readings_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("".join(f"s{n}\tt{n}\n" for n in range(50)))
    corpus = corpora.load(config(train=str(path), hold_out=3))
    assert len([*corpus.train.pairs]) == 44
    path.write_text("a\tb\n" * 10)
    with pytest.raises(InputError, match="changed while it was read; start again"):
        list(corpus.train.pairs)


def test_reading_tells_its_share(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("".join(f"Satz {n}\tsentence {n}\n" for n in range(50_000)))
    shares: list[float | None] = []
    stages = set()

    def progress(text: str, share: float | None) -> None:
        stages.add(text)
        shares.append(share)

    for _ in PairStream("t.tsv", config(), tmp_path, progress):
        pass
    assert stages == {"reading t.tsv"} and len(shares) > 3
    assert shares == sorted(shares, key=float) and shares[-1] == 1.0
