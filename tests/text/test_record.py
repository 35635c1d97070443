"""Records of readings: they save a second one, and never outlive what they depend on."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import DataConfig
from seq2see.text import corpora
from seq2see.text.history import History, fingerprints
from seq2see.text.record import INDEX, PRINTS
from seq2see.text.separation import Corpus, Scan


def lines(count: int, word: str = "Satz") -> str:
    return "".join(f"{word} {n}\tsentence {word} {n}\n" for n in range(count))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.tsv").write_text(f"{lines(60)}leer\t\n", encoding="utf-8")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(lines(30, "Wort").encode()))
    (tmp_path / "val.tsv").write_text("Satz 3\tsentence 5\n", encoding="utf-8")
    return tmp_path


def load(
    folder: Path, history: History | None = None, alone: bool = False, **keys: Any
) -> tuple[Corpus, bool]:
    """Load a corpus and keep a record; tell whether its training set was read."""
    given = {"mix": {"a.tsv": 2, "b.tsv.gz": 1}, "val": "val.tsv", "hold_out": 5} | keys
    config = DataConfig.model_validate({"source": "de", "target": "en", **given})
    corpus = corpora.load(config, folder, history, stores=folder / "stores")
    if corpus.keep is None:
        return corpus, False
    corpus.keep(alone)
    return corpus, True


def test_a_second_start_reads_nothing_and_has_the_same_corpus(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, was_read = load(folder)
    assert was_read
    monkeypatch.setattr(Scan, "of", lambda mixture: pytest.fail("the training set is read"))
    second, was_read = load(folder)
    assert not was_read
    assert second == first
    assert (second.notes, second.left_out, second.shares) == (
        first.notes,
        first.left_out,
        first.shares,
    )
    assert first.left_out == 1 and first.train.dropped == 1 and len(first.notes) == 2
    assert [*second.train.pairs] == [*first.train.pairs]
    assert len(second.train.pairs) == 90 - 1 - len(first.tests["test"].pairs)
    assert np.array_equal(second.history.train, first.history.train)
    assert second.history.held_out.keys() == first.history.held_out.keys()
    for name, prints in first.history.held_out.items():
        assert np.array_equal(second.history.held_out[name], prints)


def test_processes_that_have_read_together_write_one_record(folder: Path) -> None:
    keys = {"source": "de", "target": "en", "train": "a.tsv", "val": "val.tsv", "hold_out": 5}
    config = DataConfig.model_validate(keys)
    stores = folder / "stores"
    both = [corpora.load(config, folder, stores=stores) for _ in range(2)]
    times = []
    for corpus in both:
        assert corpus.keep is not None
        corpus.keep(True)
        times.append({path.name: path.stat().st_mtime_ns for path in stores.glob("*/*")})
    assert times[0] == times[1] and len(times[0]) == 3


def test_a_resumed_run_needs_no_reading_either(folder: Path) -> None:
    first, _ = load(folder)
    resumed, was_read = load(folder, first.history)
    assert not was_read and resumed == first
    other = History(ancestors=np.unique(fingerprints([("Satz 7", "")])))
    assert load(folder, other)[1]
    assert len([*(folder / "stores").iterdir()]) == 2
    assert [load(folder, history)[1] for history in (None, other)] == [False, False]


@pytest.mark.parametrize("name", ["a.tsv", "b.tsv.gz", "val.tsv"])
def test_a_changed_file_is_read_again_even_if_it_looks_the_same(folder: Path, name: str) -> None:
    before, _ = load(folder)
    path = folder / name
    status = path.stat()
    packed = name.endswith("gz")
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    content = content.replace(b" 3\t", b" 4\t")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert path.stat().st_size == status.st_size or packed
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after, was_read = load(folder)
    assert was_read
    assert after != before


def test_other_settings_are_another_reading(folder: Path) -> None:
    load(folder)
    assert load(folder, overlap="keep")[1]
    assert load(folder, mix={"a.tsv": 3, "b.tsv.gz": 1})[1]
    assert load(folder, mix={"b.tsv.gz": 1, "a.tsv": 2})[1]
    assert not load(folder)[1]
    assert load(folder, alone=True, hold_out=6)[1]  # a run keeps no other
    assert len([*(folder / "stores").iterdir()]) == 1
    assert load(folder)[1]


def test_a_damaged_record_is_refused(folder: Path) -> None:
    load(folder)
    (record,) = (folder / "stores").iterdir()
    prints = (record / PRINTS).read_bytes()
    (record / PRINTS).write_bytes(prints[:-1] + bytes([prints[-1] ^ 1]))
    with pytest.raises(InputError, match=r"^\S+fingerprints: damaged: its SHA-256 is not the one"):
        load(folder)
    (record / PRINTS).write_bytes(prints)
    index = json.loads((record / INDEX).read_bytes())
    for broken in ("{", "{}", json.dumps(index | {"facts": {}})):
        (record / INDEX).write_text(broken)
        with pytest.raises(InputError, match=r"corpus.json: not the index of a reading: .*remove"):
            load(folder)
    (record / INDEX).unlink()  # as a killed process leaves it
    assert load(folder)[1]
    assert not load(folder)[1]


@pytest.mark.parametrize("index", ["{", "[]", '{"source": "another version\'s", "facts": {}}'])
def test_a_record_of_another_corpus_is_passed_over(folder: Path, index: str) -> None:
    other = folder / "stores" / "corpus-0"
    other.mkdir(parents=True)
    (other / INDEX).write_text(index)
    assert load(folder)[1]
    assert not load(folder)[1]


def test_a_place_that_cannot_be_written_is_one_line(folder: Path) -> None:
    (folder / "stores").write_text("")
    with pytest.raises(WorkError, match=r"stores/corpus-\w+: cannot write: Not a directory"):
        load(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "a.tsv").unlink()
    with pytest.raises(InputError, match=r"a.tsv: no such file for data.train"):
        load(folder)
    with pytest.raises(InputError, match=r"x.de: no such file; paths are relative to --data"):
        load(folder, mix=None, train=["x.de", "x.en"])
