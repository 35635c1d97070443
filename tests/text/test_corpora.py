"""Reading parallel text: checks, held-out sets, and the location of named corpora."""

import gzip
import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text import corpora
from seq2see.text.reading import Table

DATA = Path(os.environ.get("SEQ2SEE_DATA", ""))
TATOEBA = DATA / "tatoeba" / "deu-eng.tsv.gz"


def config(**keys: Any) -> DataConfig:
    return DataConfig.model_validate({"source": "de", "target": "en", **keys})


def write(directory: Path, **files: str | bytes) -> Path:
    """Write files whose names have `__` for a dot."""
    for name, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        (directory / name.replace("__", ".")).write_bytes(content)
    return directory


def numbered(count: int, word: str = "satz") -> str:
    return "".join(f"{word} {number}\tsentence {word} {number}\n" for number in range(count))


def test_aligned_files_must_have_equally_many_lines(tmp_path: Path) -> None:
    write(tmp_path, a="eins\nzwei\n", b="one\ntwo\nthree\n")
    with pytest.raises(InputError, match=r"a has 2 lines and .*b 3; they must pair up"):
        corpora.read_pairs(["a", "b"], config(train="t"), tmp_path)
    with pytest.raises(InputError, match=r"lists 1 files"):
        corpora.read_pairs(["a"], config(train="t"), tmp_path)


def test_columns_of_a_table(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="7\tone\teins\r\n8\ttwo\tzwei\tmore\r\n\r\n")
    pairs = corpora.read_pairs("t.tsv", config(train="t.tsv", columns=[2, 1]), tmp_path).pairs
    assert pairs == [("eins", "one"), ("zwei", "two"), ("", "")]


def test_the_ending_tells_the_format(tmp_path: Path) -> None:
    json = b'{"en": "one", "de": "eins"}\n'
    csv = b"en;de\none;eins\n"
    write(tmp_path, a__jsonl=json, b__ndjson=json, c__json__gz=gzip.compress(json), d__CSV=csv)
    write(tmp_path, e__csv__gz=gzip.compress(csv), f__tsv="en\tde\none\teins\n", g="eins\tone\n")
    for path in tmp_path.iterdir():
        pairs = corpora.read_pairs(path.name, config(train="t"), tmp_path).pairs
        assert pairs == [("eins", "one")], path


def test_aligned_files_may_have_a_header(tmp_path: Path) -> None:
    write(tmp_path, a="Deutsch\neins\n", b="English\none\n")
    table = corpora.read_pairs(["a", "b"], config(train="t"), tmp_path)
    note = "a and b: line 1 is a header (Deutsch, English); not trained on"
    assert table == Table([("eins", "one")], [note])


def test_duplicate_and_untranslated_pairs_are_counted(tmp_path: Path) -> None:
    again = "Satz  0\tsentence satz 0\nsatz 1\tsentence satz 1\nsatz 1\tsentence satz 1\n"
    sides = "London\tlondon\n<br>\t<br>\n"
    write(tmp_path, val__tsv="x\ty\n", clean__tsv=numbered(9))
    write(tmp_path, again__tsv=numbered(9) + again, both__tsv=numbered(9) + again + sides)

    def notes(name: str) -> list[str]:
        keys = {"train": name, "val": "val.tsv", "test": "val.tsv"}
        return list(corpora.load(config(**keys), tmp_path).notes)

    assert notes("clean.tsv") == []
    assert notes("again.tsv") == ["12 training pairs, all kept · duplicates: 3"]
    untranslated = "untranslated (source = target): 2"
    assert notes("both.tsv") == [f"14 training pairs, all kept · duplicates: 3 · {untranslated}"]


def test_a_note_on_a_file_is_made_once(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="de\ten\n" + numbered(3))
    keys = {"train": "t.tsv", "val": "t.tsv", "test": "t.tsv", "overlap": "keep"}
    corpus = corpora.load(config(**keys), tmp_path)
    assert len(corpus.train.pairs) == len(corpus.val.pairs) == 3
    note = "line 1 is a header (de, en); not trained on"
    assert corpus.notes == [f"{tmp_path / 't.tsv'}: {note}"]


def test_pairs_with_an_empty_side_are_dropped_and_counted(tmp_path: Path) -> None:
    write(tmp_path, train__de="a\n\nc\nd\n", train__en="A\nB\n \nD\n", v="x\ty\n\tz\n", t="x\ty\n")
    corpus = corpora.load(config(train=".", val="v", test="t"), tmp_path)
    assert ([*corpus.train.pairs], corpus.train.dropped) == ([("a", "A"), ("d", "D")], 2)
    assert (corpus.val.pairs, corpus.val.dropped) == ([("x", "y")], 1)
    assert corpus.train.digest == hashlib.sha256(b"a\nA\nd\nD\n").hexdigest()
    write(tmp_path, v="\tz\nx\t\n")
    with pytest.raises(InputError, match="v: no pair has text on both sides"):
        corpora.load(config(train=".", val="v", test="t"), tmp_path)


def test_a_directory_brings_its_splits(tmp_path: Path) -> None:
    for split in ("train", "val", "test", "test_2", "extra"):
        english = gzip.compress(f"{split} en\n".encode())
        write(tmp_path, **{f"{split}__de": f"{split} de\n".encode(), f"{split}__en__gz": english})
    write(
        tmp_path,
        test_2__de__gz=b"not taken, since the plain file is there",
        test_fr__de="x\n",
        test_fr__fr="y\n",
    )
    corpus = corpora.load(config(train=str(tmp_path)))
    assert [*corpus.train.pairs] == [("train de", "train en")]
    assert corpus.val.pairs == [("val de", "val en")]
    assert {name: test.pairs for name, test in corpus.tests.items()} == {
        "test": [("test de", "test en")],
        "test_2": [("test_2 de", "test_2 en")],
    }
    mine = {"mine": ["val.en.gz", "val.de"]}
    backwards = corpora.load(config(source="en", target="de", train=".", test=mine), tmp_path)
    assert [*backwards.train.pairs] == [("train en", "train de")]
    assert {name: test.pairs for name, test in backwards.tests.items()} == {
        "mine": [("val en", "val de")]
    }
    with pytest.raises(InputError, match=r"no train.fr with train.en \(or .gz, .zst\)"):
        corpora.load(config(source="fr", train="."), tmp_path)


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", t__tsv="a\tb\n", v__tsv="c\td\n")
    monkeypatch.chdir(tmp_path)
    expected = corpora.load(config(train="sub/t.tsv", val="sub/v.tsv", test="sub/v.tsv"))
    assert corpora.load(config(train="t.tsv", val="v.tsv", test="v.tsv"), Path("sub")) == expected
    for split, texts in (("train", "ab"), ("val", "cd"), ("test", "cd")):
        write(tmp_path / "sub", **{f"{split}__de": texts[0], f"{split}__en": texts[1]})
    (tmp_path / "sub" / "deep").symlink_to(tmp_path / "sub")
    assert corpora.load(config(train="deep", val="deep", test="deep"), Path("sub")) == expected


def test_hold_out_comes_before_the_limit(tmp_path: Path) -> None:
    write(tmp_path, t__tsv=numbered(200), v__tsv=numbered(3, "val"))
    whole = corpora.load(config(train="t.tsv", hold_out=7), tmp_path)
    assert [len(part.pairs) for part in (whole.train, whole.val, whole.tests["test"])] == [
        186,
        7,
        7,
    ]
    assert (whole.val.name, whole.tests["test"].name) == ("val", "test")
    limited = corpora.load(config(train="t.tsv", hold_out=7, limit=10), tmp_path)
    assert (limited.val, limited.tests) == (whole.val, whole.tests)
    assert [*limited.train.pairs] == [*whole.train.pairs][:10]
    assert limited.train.digest != whole.train.digest
    given_val = corpora.load(config(train="t.tsv", val="v.tsv", hold_out=7), tmp_path)
    assert [
        len(part.pairs) for part in (given_val.train, given_val.val, given_val.tests["test"])
    ] == [193, 3, 7]
    no_test = corpora.load(config(train="t.tsv", val="v.tsv", hold_out=0), tmp_path)
    assert (len(no_test.train.pairs), no_test.tests) == (200, {})
    with pytest.raises(
        InputError, match=r"data.hold_out = 0, but there is no validation set; give data.val"
    ):
        corpora.load(config(train="t.tsv", hold_out=0), tmp_path)
    default = corpora.load(config(train="t.tsv"), tmp_path)
    assert len(default.val.pairs) == len(default.tests["test"].pairs) == 10  # 5 %
    assert default.notes == ["held out of 200 pairs: 10 for val and 10 for test"]


def test_a_wish_to_hold_out_is_fulfilled_or_refused(tmp_path: Path) -> None:
    write(tmp_path, t__tsv=numbered(100), v__tsv=numbered(3, "val"))
    half = corpora.load(config(train="t.tsv", hold_out=25), tmp_path)
    assert [len(part.pairs) for part in (half.train, half.val, half.tests["test"])] == [50, 25, 25]
    assert half.notes == ["held out of 100 pairs: 25 for val and 25 for test"]
    with pytest.raises(
        InputError,
        match=r"data.hold_out = 200: val and test of that size would take more than half of 100 "
        r"pairs; ask for up to 25, or give data.val and data.test$",
    ):
        corpora.load(config(train="t.tsv", hold_out=200), tmp_path)
    only_test = corpora.load(config(train="t.tsv", val="v.tsv", hold_out=50), tmp_path)
    assert only_test.notes == ["held out of 100 pairs: 50 for test"]
    with pytest.raises(InputError, match=r"= 51: test of that .* up to 50, or give data.test$"):
        corpora.load(config(train="t.tsv", val="v.tsv", hold_out=51), tmp_path)
    with pytest.raises(InputError, match=r"half of 3 pairs; give data.val and data.test$"):
        corpora.load(config(train="v.tsv", hold_out=1), tmp_path)


def test_a_wish_that_groups_do_not_allow_is_reduced_and_said(tmp_path: Path) -> None:
    same = "".join(f"immer dasselbe\tanother {number}\n" for number in range(70))
    write(tmp_path, t__tsv=numbered(30) + same)
    corpus = corpora.load(config(train="t.tsv", hold_out=20), tmp_path)
    assert corpus.notes == [
        "data.hold_out = 20, but held out of 100 pairs: 20 for val and 10 for test; "
        "the others share sentences with too many pairs"
    ]


def test_consecutive_pairs_are_joined_in_every_part(tmp_path: Path) -> None:
    write(tmp_path, t__tsv=numbered(200) + "\t \n", v__tsv="a\tb\nc\td\ne\tf\n")
    paths = {"train": "t.tsv", "val": "v.tsv"}
    single = corpora.load(config(**paths, hold_out=7), tmp_path)
    long = corpora.load(config(**paths, hold_out=7, join=2), tmp_path)
    assert long.val.pairs == [("a c", "b d"), ("e", "f")]
    assert [len(part.pairs) for part in (long.train, long.tests["test"])] == [97, 4]  # of 193 and 7
    for one, other in (
        (single.train, long.train),
        (single.val, long.val),
        (single.tests["test"], long.tests["test"]),
    ):
        for side in (0, 1):
            assert " ".join(pair[side] for pair in other.pairs) == " ".join(
                pair[side] for pair in one.pairs
            )
        assert (one.name, one.dropped) == (other.name, other.dropped) and one.digest != other.digest
    text = "a c\nb d\ne\nf\n"
    assert long.val.digest == hashlib.sha256(text.encode()).hexdigest()
    # The limit counts pairs before they are joined.
    limited = corpora.load(config(**paths, hold_out=7, join=3, limit=10), tmp_path)
    assert [pair[0].count(" ") for pair in limited.train.pairs] == [
        count * (1 + next(iter(single.train.pairs))[0].count(" ")) - 1 for count in (3, 3, 3, 1)
    ]
    assert limited.tests["test"].pairs[0][0].startswith(single.tests["test"].pairs[0][0])
    assert corpora.load(config(**paths, join=1), tmp_path) == corpora.load(
        config(**paths), tmp_path
    )
    everything = corpora.load(config(**paths, join=1000), tmp_path)
    assert len(everything.train.pairs) == len(everything.val.pairs) == 1


def test_captions_are_joined() -> None:
    single = corpora.load(config(corpus="captions", limit=30))
    long = corpora.load(config(corpus="captions", limit=30, join=7))
    assert [len(part.pairs) for part in (long.train, long.val, *long.tests.values())] == [
        5,
        143,
        143,
        143,
    ]
    assert [*long.train.pairs][-1][0] == " ".join(
        source for source, _ in [*single.train.pairs][28:]
    )


def test_captions_read_no_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--data .*: data.corpus 'captions' is embedded"):
        corpora.load(DataConfig(corpus="captions"), tmp_path)


def test_too_little_to_hold_out(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="a\tb\nc\td\n")
    with pytest.raises(
        InputError, match=r"t.tsv': 2 pairs are too few .* give data.val and data.test"
    ):
        corpora.load(config(train="t.tsv"), tmp_path)


def test_captions_in_both_directions() -> None:
    forth = corpora.load(config(corpus="captions", limit=30))
    back = corpora.load(config(corpus="captions", limit=30, source="en", target="de"))
    assert len(forth.train.pairs) == 30 and len(forth.val.pairs) == 1000
    assert {name: len(test.pairs) for name, test in forth.tests.items()} == {
        "test": 1000,
        "test_structures": 1000,
    }
    assert [pair[::-1] for pair in back.train.pairs] == [*forth.train.pairs]
    with pytest.raises(InputError, match="'captions' is in two of de, en, zh, not 'fr' and 'en'"):
        corpora.load(config(corpus="captions", source="fr"))


@pytest.mark.skipif(not TATOEBA.exists(), reason="Tatoeba is not under SEQ2SEE_DATA")
def test_tatoeba_overlaps_with_its_own_test_set() -> None:
    test = "test-v2021-08-07.deu-eng.tsv.gz"
    keys = {"train": TATOEBA.name, "columns": [1, 0], "val": test, "test": test}
    corpus = corpora.load(config(**keys), TATOEBA.parent)
    assert corpus.left_out == 10_148
    assert len(corpus.train.pairs) + corpus.left_out == 169_813
    shares = "10,148 of 169,813 training pairs share a sentence with test (10,148) or val (10,148)"
    assert any(note.startswith(shares) for note in corpus.notes)


@pytest.mark.skipif(not TATOEBA.exists(), reason="Tatoeba is not under SEQ2SEE_DATA")
def test_holding_out_of_tatoeba() -> None:
    started = time.process_time()
    corpus = corpora.load(config(train=TATOEBA.name, columns=[1, 0]), TATOEBA.parent)
    assert time.process_time() - started < 10  # measured: 2 seconds
    test = corpus.tests["test"]
    assert [len(part.pairs) for part in (corpus.train, corpus.val, test)] == [167_813, 1000, 1000]
    assert corpus.train.digest.startswith("d5754577f89e7546")
    for side in (0, 1):
        known = {pair[side] for pair in corpus.train.pairs}
        assert not any(pair[side] in known for pair in corpus.val.pairs + test.pairs)


def test_corpora_are_mixed(tmp_path: Path) -> None:
    write(tmp_path, a__tsv=numbered(40, "a"), b__jsonl='{"de": "x", "en": "y"}\n', v="v\tw\n")
    (tmp_path / "c").mkdir()
    write(tmp_path / "c", train__de="eins\n\nzwei\n", train__en="one\ntwo\nthree\n", val__de="n\n")
    keys = {"mix": {"a.tsv": 1, "b.jsonl": 3, "c": 0.5}, "val": "v", "test": "v"}
    corpus = corpora.load(config(**keys), tmp_path)
    pairs = [*corpus.train.pairs]
    assert pairs[-3:] == [("x", "y"), ("eins", "one"), ("zwei", "three")] and len(pairs) == 43
    assert [*corpus.shares] == [(40, 1), (1, 3), (2, 0.5)] and corpus.train.dropped == 1
    held = corpora.load(config(mix={"a.tsv": 2, "c": 1}, hold_out=5), tmp_path)
    assert sum(share.pairs for share in held.shares) == len(held.train.pairs) == 32
    with pytest.raises(InputError, match=r"none: no such file for data.train"):
        corpora.load(config(mix={"none": 1}), tmp_path)
