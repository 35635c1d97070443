"""What a source piece may become: learned from pairs, written for CTranslate2, and obeyed by it."""

import random
from pathlib import Path
from typing import Any

import pytest

from seq2see import ct2, export
from seq2see.ct2 import SHORTLIST, Engine, Setting
from seq2see.errors import InputError
from seq2see.hypotheses import Search
from seq2see.shortlist import likely, vocabulary_map
from seq2see.text.vocab import END, SPECIALS
from seq2see.translator import Translator

WORDS = 12  # of a language in which s becomes s + WORDS, anywhere in the sentence
FIRST = len(SPECIALS)


@pytest.fixture
def pairs() -> list[tuple[list[int], list[int]]]:
    draw, found = random.Random(1), []
    for _ in range(300):
        source = [draw.randrange(FIRST, FIRST + WORDS) for _ in range(draw.randint(1, 6))]
        found.append((source, draw.sample([id + WORDS for id in source], len(source))))
    return found


def test_each_word_finds_its_translation_whatever_the_order(pairs: list[tuple[list[int], list[int]]]) -> None:
    found = likely(pairs, FIRST + 2 * WORDS, most=2)
    assert all(found[id][0] == id + WORDS and len(found[id]) <= 2 for id in range(FIRST, FIRST + WORDS))
    assert END in found  # for what has no word of its own
    assert likely([], 10, most=2) == {}


def test_the_map_names_pieces_and_leaves_out_what_it_cannot_name() -> None:
    sources, targets = [*SPECIALS, "eins", "zw ei"], [*SPECIALS, "one", "t\two"]
    one, two = len(SPECIALS), len(SPECIALS) + 1
    found = dict(
        line.split("\t") for line in vocabulary_map([([one], [one]), ([two], [two]), ([], [one])], sources, targets, 3)
    )
    assert found == {"": "one", "eins": "one", SPECIALS[END]: "one"}


def test_an_export_with_a_shortlist_translates_and_scores_as_before(
    trained: Path, translator: Translator, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "CALIBRATION", 0.0)
    texts = [line.split("\t") for line in toy.pairs.read_text(encoding="utf-8").splitlines()]
    sources = [source for source, _ in texts]
    pairs = [(source, target) for source, target in texts]
    found = export.export(trained, tmp_path / "out", quantization="float32", shortlist=8, pairs=pairs)
    assert found["shortlist"] == 8
    engine = ct2.load(tmp_path / "out")
    assert engine.translate(sources) == translator.translate(sources)
    ids = [translator.tokenizers.source.encode(source) for source in sources[:3]]
    short = Search(beam=2, length_penalty=0.6, max_ratio=0.01, min_length=0)  # each is searched once more
    assert all(found[0].ids for found in engine.hypotheses(ids, short))
    (tmp_path / "out" / SHORTLIST).write_text("\tthree\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"{SHORTLIST}: SHA-256"):
        ct2.load(tmp_path / "out")


def test_what_is_not_on_the_shortlist_cannot_come(trained: Path, translator: Translator, tmp_path: Path) -> None:
    export.convert(translator, tmp_path, "float32")
    only = translator.tokenizers.target.encode("three")
    names = [translator.tokenizers.target.piece(id) for id in only]
    (tmp_path / SHORTLIST).write_text("\t" + " ".join(names) + "\n", encoding="utf-8")
    engine = Engine(tmp_path, translator.recipe, translator.tokenizers, Setting(1, 1, 2048))
    (found,) = engine.hypotheses([translator.tokenizers.source.encode("acht eins")], Search.of(translator.recipe))
    assert set(found[0].ids) <= {*only}
