"""Histories: equal sentences have equal fingerprints, and a file holds all of them."""

from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import InputError
from seq2see.text.history import FILE, History, fingerprints, keys

PAIRS = [("Ein Hund", "A dog"), ("Katzen", "Cats"), ("A dog", "Ein Hund")]


def test_case_and_spacing_do_not_change_a_fingerprint() -> None:
    prints = fingerprints([*PAIRS, ("ein  HUND ", "a Dog")])
    assert prints.shape == (4, 2) and prints.dtype == np.uint64
    assert prints[0].tolist() == prints[3].tolist() == prints[2, ::-1].tolist()
    assert len({*prints[:3].ravel().tolist()}) == 4
    assert len({*keys(prints).tolist()}) == 3  # the sides of a pair are told apart
    assert fingerprints([]).shape == (0, 2)


def test_a_child_inherits_the_sentences_of_all_before_it() -> None:
    grandparent = History(train=fingerprints(PAIRS[:1]))
    parent = History(train=fingerprints(PAIRS[1:2]), ancestors=grandparent.inherited().ancestors)
    child = parent.inherited()
    new = ("Neues", "News")
    assert child.saw(fingerprints([PAIRS[0], ("Neues", "cats"), new])).tolist() == [
        True,
        True,
        False,
    ]
    assert not child.held_out and not len(child.train)


@pytest.mark.parametrize("complete", [True, False])
def test_a_file_holds_the_whole_history(tmp_path: Path, complete: bool) -> None:
    assert History.load(tmp_path) is None
    prints = fingerprints(PAIRS)
    held_out = {"val": prints[:1], "test/test": prints[1:]}
    History(prints, held_out, np.unique(prints), complete).save(tmp_path)
    again = History.load(tmp_path)
    assert again is not None
    assert again.train.tolist() == prints.tolist()
    assert {name: part.tolist() for name, part in again.held_out.items()} == {
        name: part.tolist() for name, part in held_out.items()
    }
    assert again.ancestors.tolist() == np.unique(prints).tolist()
    assert (again.complete, again.path) == (complete, tmp_path)
    assert (tmp_path / FILE).stat().st_size < 1000


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no safetensors")
    with pytest.raises(InputError, match=r"history.safetensors: cannot read the history"):
        History.load(tmp_path)
