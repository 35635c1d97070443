"""Held-out sets stay apart from training: of a run on a grown corpus, and of a parent's child."""

from pathlib import Path

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text import corpora
from seq2see.text.history import History
from seq2see.text.lines import Pair
from seq2see.text.separation import Corpus


def numbered(start: int, stop: int) -> list[Pair]:
    return [(f"source {number}", f"target {number}") for number in range(start, stop)]


class Folder:
    """A folder of TSV files, and the corpora that they make."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, pairs: list[Pair]) -> None:
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (self.path / name).write_text(text, encoding="utf-8")

    def load(self, history: History | None = None, **keys: object) -> Corpus:
        config = DataConfig.model_validate({"train": "train.tsv", "hold_out": 10, **keys})
        return corpora.load(config, self.path, history)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("train.tsv", numbered(0, 400))
    return folder


@pytest.mark.parametrize("join", [1, 3])
def test_a_run_finds_its_splits_again(folder: Folder, join: int) -> None:
    corpus = folder.load(join=join)
    assert folder.load(corpus.history, join=join) == corpus
    # Held-out sets of before are kept, not chosen again.
    assert folder.load(corpus.history, join=join, hold_out=5) == corpus


def test_new_pairs_join_training_unless_they_share_a_held_out_sentence(folder: Folder) -> None:
    before = folder.load()
    (source, target), *_ = before.tests["test"].pairs
    leaks = [(source.upper(), "new"), ("neu", target), before.val.pairs[0]]
    trained = [*before.train.pairs]
    folder.write("train.tsv", [*leaks, *numbered(0, 500)])
    after = folder.load(before.history)
    assert (after.val, after.tests) == (before.val, before.tests)
    assert [*after.train.pairs] == [*trained, *numbered(400, 500)]
    assert after.left_out == 3
    assert before.history.missing(after.history.train) == 0
    assert after.history.missing(before.history.train) == 100
    # Another run holds out others.
    assert folder.load().val.pairs != before.val.pairs


def test_missing_held_out_pairs_are_counted(folder: Folder, tmp_path: Path) -> None:
    corpus = folder.load()
    corpus.history.save(tmp_path)
    folder.write("train.tsv", [*[*corpus.train.pairs][5:], *corpus.val.pairs[2:]])
    says = rf"^{tmp_path}: was trained on other data: 17 of its 400 pairs are missing here; a new"
    with pytest.raises(InputError, match=says):
        folder.load(History.load(tmp_path))


def test_a_parents_sentences_are_not_held_out(folder: Folder) -> None:
    parent = folder.load()
    inherited = parent.history.inherited()
    child = folder.load(inherited)
    assert child == parent  # on the same corpus the held-out sets are inherited
    trained = [*parent.train.pairs]
    folder.write("train.tsv", numbered(300, 600))
    child = folder.load(inherited)
    known = {text for pair in trained for text in pair}
    for held_out in (child.val, child.tests["test"]):
        assert len(held_out.pairs) == 10 and held_out.seen == 0
        assert not known & {text for pair in held_out.pairs for text in pair}
    assert folder.load(child.history) == child  # whatever becomes of the parent
    folder.write("train.tsv", trained[:100])
    says = r"100 pairs \(100 of them known to None\) are too few or too much alike to hold out val"
    with pytest.raises(InputError, match=says):
        folder.load(inherited)


def test_few_sentences_that_a_parent_does_not_know_are_divided(folder: Folder) -> None:
    parent = folder.load()
    child = folder.load(parent.history.inherited(), hold_out=15)
    assert (child.val, child.tests) == (parent.val, parent.tests)
    (note,) = child.notes
    assert note.startswith("data.hold_out = 15, but held out of 400 pairs: 10 for val and 10 for")


def test_known_pairs_are_removed_from_given_sets(folder: Folder) -> None:
    parent = folder.load(hold_out=0, val="train.tsv", limit=300, overlap="keep")
    folder.write("val.tsv", numbered(280, 320))
    folder.write("test.tsv", [("SOURCE  5", "anders"), ("neu", "target 7"), ("neu", "new")])
    keys = {"val": "val.tsv", "test": "test.tsv"}
    child = folder.load(parent.history.inherited(), **keys)
    assert child.val.pairs == numbered(300, 320) and child.val.seen == 20
    assert child.tests["test"].pairs == [("neu", "new")] and child.tests["test"].seen == 2
    # The removal comes before pairs are joined.
    joined = folder.load(parent.history.inherited(), **keys, join=10)
    assert len(joined.val.pairs) == 2 and joined.val.seen == 20
    assert len(folder.load(**keys).val.pairs) == 40
    folder.write("val.tsv", numbered(0, 5))
    with pytest.raises(InputError, match=r"was trained on all 5 examples of val; choose a val set"):
        folder.load(parent.history.inherited(), **keys)


def test_training_pairs_that_share_a_held_out_sentence_are_dropped(folder: Folder) -> None:
    folder.write("val.tsv", [("SOURCE  5", "anders"), ("neu", "new")])
    folder.write("test.tsv", [("x", "target 5"), ("y", "Target 7")])
    keys = {"val": "val.tsv", "test": "test.tsv"}
    corpus = folder.load(**keys)
    expected = [pair for pair in numbered(0, 400) if pair[0] not in ("source 5", "source 7")]
    assert [*corpus.train.pairs] == expected and corpus.left_out == 2
    assert len(corpus.history.train) == 398
    shares = "2 of 400 training pairs share a sentence with test (2) or val (1) and are left out"
    assert corpus.notes == [f'{shares}; data.overlap = "keep" keeps them']
    assert folder.load(corpus.history, **keys) == corpus  # as a run that is resumed
    kept = folder.load(**keys, overlap="keep")
    assert [*kept.train.pairs] == numbered(0, 400) and kept.left_out == 0 and kept.notes == []


def test_a_run_that_was_trained_on_the_overlap_keeps_it(folder: Folder) -> None:
    folder.write("val.tsv", numbered(5, 6))
    keys = {"val": "val.tsv", "test": "val.tsv"}
    before = folder.load(**keys, overlap="keep")  # as every run of earlier versions
    folder.write("train.tsv", [*numbered(0, 400), ("SOURCE 5", "new"), ("neu", "new")])
    after = folder.load(before.history, **keys)
    assert [*after.train.pairs] == [*numbered(0, 400), ("neu", "new")] and after.left_out == 1


def test_a_run_without_a_history_keeps_its_training_set(folder: Folder, tmp_path: Path) -> None:
    folder.write("val.tsv", numbered(5, 6))
    corpus = folder.load(History.of(tmp_path), val="val.tsv", test="val.tsv")
    assert [*corpus.train.pairs] == numbered(0, 400) and corpus.left_out == 0


def test_a_training_set_that_overlaps_completely_is_refused(folder: Folder) -> None:
    says = r'all 400 pairs share a sentence with val \(400\); data.overlap = "keep" trains on such'
    with pytest.raises(InputError, match=says):
        folder.load(val="train.tsv", hold_out=0)
