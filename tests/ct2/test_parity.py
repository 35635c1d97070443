"""Parity of a converted model: the sample is fixed, only near ties may differ."""

from pathlib import Path

import pytest

from seq2see.ct2 import engine as ct2
from seq2see.ct2 import parity
from seq2see.ct2.engine import Engine
from seq2see.ct2.parity import Parity, compare, logged, sentences
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.errors import WorkError
from seq2see.tasks.translator import Translator


def test_the_sample_comes_from_the_text_or_the_log_and_never_changes(
    trained: Path, translator: Translator
) -> None:
    texts = logged(trained / "log.jsonl")
    assert texts and all(
        f"{text}\t" in (trained.parent / "pairs.tsv").read_text(encoding="utf-8") for text in texts
    )
    assert logged(trained / "none.jsonl") == []
    real, drawn = sentences(translator, ["zwei vier", " ", "acht " * 200])
    assert real == [translator.tokenizers.source.encode("zwei vier")]
    assert drawn == sentences(translator, [])[1] and [len(ids) for ids in drawn][::23] == [
        1,
        39,
    ]


def test_other_translations_are_let_pass_only_at_a_near_tie(
    exported: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = translator.tokenizers.source.encode("zwei vier"), translator.tokenizers.target
    engine = ct2.load(exported)
    (right,) = engine.hypotheses([source], Search(beam=1))
    wrong = [Hypothesis([*right[0].ids[:-1], target.encode("ten")[-1]], 0.0, 0.0)]
    monkeypatch.setattr(Engine, "hypotheses", lambda *_: [wrong])
    with pytest.raises(WorkError, match="of a greedy translation is"):
        compare(translator, engine, [source])
    cut = [Hypothesis(right[0].ids[:-1], 0.0, 0.0)]
    monkeypatch.setattr(Engine, "hypotheses", lambda *_: [cut])
    with pytest.raises(WorkError, match="is '</s>' instead of "):
        compare(translator, engine, [source])
    monkeypatch.setattr(parity, "_check_near_tie", lambda *_: None)
    assert compare(translator, engine, [source]) == Parity(
        len(right[0].ids) + 1 + 1 + 65 + 129, pytest.approx(0, abs=1e-4), 1, near_ties=1
    )
