"""Texts given to either engine: what is not a string is named before any work."""

from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.errors import InputError
from seq2see.tasks.translation_engine import TranslationEngine


@pytest.fixture(params=["trained", "exported"])
def engine(request: pytest.FixtureRequest) -> TranslationEngine:
    return seq2see.load(request.getfixturevalue(request.param))


def test_what_is_not_a_string_is_named(engine: Any) -> None:
    for call, says in (
        (lambda: engine.translate([None]), r"texts\[0\] is None; it must be a string"),
        (lambda: engine.search(["eins", 5]), r"texts\[1\] is 5; it must be a string"),
        (lambda: engine.translate([b"eins"]), r"texts\[0\] is b'eins'; it must be a string"),
        (lambda: engine.translate("eins"), "texts must be a list of strings, not one string"),
        (lambda: engine.score(["eins", None], ["one", "two"]), r"sources\[1\] is None"),
        (lambda: engine.score(["eins"], [["one"]]), r"targets\[0\] is \['one'\]"),
        (lambda: engine.score(["eins"], "one"), "targets must be a list of strings"),
    ):
        with pytest.raises(TypeError, match=says):
            call()


def test_any_iterable_of_texts_is_translated(engine: Any) -> None:
    assert engine.translate(text for text in ("zwei vier", "")) == ["two four", ""]
    assert engine.translate(["zwei vier"], n_best=2)[0][0] == "two four"


def test_both_engines_score_alike(trained: Path, exported: Path) -> None:
    pairs = (["zwei vier", "", "zwei vier"], ["two four", "one", "two four"])
    ours, theirs = (seq2see.load(model).score(*pairs) for model in (trained, exported))
    assert theirs == pytest.approx(ours, abs=1e-3) and theirs[0] == theirs[2]


def test_the_directory_decides_the_engine(trained: Path, exported: Path) -> None:
    assert isinstance(seq2see.load(trained), seq2see.Translator)
    assert isinstance(seq2see.load(exported), seq2see.Engine)
    for model, other in ((trained, "ct2"), (exported, "torch")):
        with pytest.raises(InputError, match=f"{model}: (not exported|an export)"):
            seq2see.load(model, engine=other)


def test_an_export_says_that_it_cannot_explain(exported: Path) -> None:
    says = f"{exported}: an export for CTranslate2 cannot explain; load the model it was exported"
    with pytest.raises(InputError, match=says):
        seq2see.load(exported).explain("eins")
    with pytest.raises(InputError, match="device 'cuda': CTranslate2 runs on the cpu here"):
        seq2see.load(exported, "cuda")
