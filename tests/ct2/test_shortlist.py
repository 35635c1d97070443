"""Shortlists are learned from pairs, written for CTranslate2, and obeyed by it."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seq2see.ct2 import calibration, convert, export, parity, shortlist
from seq2see.ct2 import engine as ct2
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import SHORTLIST, Engine
from seq2see.ct2.shortlist import likely, vocabulary_map
from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END, SPECIALS

WORDS = 12  # of a language in which s becomes s + WORDS, anywhere in the sentence
FIRST = len(SPECIALS)


@pytest.fixture
def pairs() -> list[tuple[list[int], list[int]]]:
    draw = random.Random(1)
    drawn = []
    for _ in range(300):
        source = [draw.randrange(FIRST, FIRST + WORDS) for _ in range(draw.randint(1, 6))]
        drawn.append((source, draw.sample([id + WORDS for id in source], len(source))))
    return drawn


def test_each_word_finds_its_translation_whatever_the_order(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    ranked = likely(pairs, FIRST + 2 * WORDS, most=2)
    assert all(
        ranked[id][0] == id + WORDS and len(ranked[id]) <= 2 for id in range(FIRST, FIRST + WORDS)
    )
    assert END in ranked  # for what has no word of its own
    assert likely([], 10, most=2) == {}


def test_the_map_names_pieces_and_leaves_out_what_it_cannot_name() -> None:
    sources, targets = [*SPECIALS, "eins", "zw ei"], [*SPECIALS, "one", "t\two"]
    one, two = len(SPECIALS), len(SPECIALS) + 1
    rows = dict(
        line.split("\t")
        for line in vocabulary_map(
            [([one], [one]), ([two], [two]), ([], [one])], sources, targets, 3
        )
    )
    assert (
        rows.pop("") == "one"
        and rows.pop("eins") == "one"
        and rows.pop(SPECIALS[END]) == f"one {SPECIALS[END]}"
    )
    assert rows == {
        name: name for name in SPECIALS if name != SPECIALS[END]
    }  # what is known to neither may be copied


def test_an_export_with_a_shortlist_translates_as_before(
    trained: Path, translator: Translator, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "CALIBRATION", 0.0)
    monkeypatch.setattr(shortlist, "COMMON", 2)
    monkeypatch.setattr(ct2, "PATIENCE", 2)  # so that CTranslate2 searches as far as ours
    rows = [line.split("\t") for line in toy.pairs.read_text(encoding="utf-8").splitlines()]
    pairs = [(source, target) for source, target in rows]
    texts = {
        "sources": [source for source, _ in pairs[:40]],
        "references": [target for _, target in pairs[:40]],
    }
    result = export.export(
        trained, tmp_path / "out", quantization="float32", shortlist=4, pairs=pairs, **texts
    )
    assert (
        result["shortlist"] == 4 and abs(result["difference"]) < 1
    )  # BLEU, each sentence with its own list alone
    lines = dict(
        line.split("\t")
        for line in (tmp_path / "out" / SHORTLIST).read_text(encoding="utf-8").splitlines()
    )
    assert (
        len(lines[""].split()) == 2 and max(len(row.split()) for row in lines.values()) <= 5
    )  # four, and a copy
    engine = ct2.load(tmp_path / "out")
    assert engine.translate(texts["sources"]) == translator.translate(texts["sources"])
    ids = [translator.tokenizers.source.encode(source) for source in texts["sources"][:3]]
    again = []
    monkeypatch.setattr(Search, "limit", lambda self, length, forced=0: 3)
    monkeypatch.setattr(
        engine,
        "_search_again",
        lambda pairs, config: again.append(pairs) or Engine._search_again(engine, pairs, config),
    )
    assert (
        all(
            hypotheses[0].ids for hypotheses in engine.hypotheses(ids, Search.of(translator.recipe))
        )
        and again[0]
    )
    (tmp_path / "out" / SHORTLIST).write_text("\tthree\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"{SHORTLIST}: its SHA-256"):
        ct2.load(tmp_path / "out")
    with pytest.raises(InputError, match="learned from pairs; none were given"):
        export.export(trained, tmp_path / "none", shortlist=4)


def test_without_a_text_it_is_calibrated_with_the_pairs(
    trained: Path, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[int]] = []
    monkeypatch.setattr(parity, "MANY", 150)
    monkeypatch.setattr(
        export, "calibrate", lambda _, __, sources: given.extend(sources) or Setting(1, 1, 512)
    )
    pairs = [(f"eins {'zwei ' * (i % 7)}drei", "one two") for i in range(200)]
    assert (
        export.export(trained, tmp_path / "out", shortlist=4, pairs=pairs)["setting"][
            "batch_tokens"
        ]
        == 512
    )
    assert given == [
        translator.tokenizers.source.encode(source) for source, _ in pairs[:150]
    ]  # more than are compared


def test_no_more_is_read_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*SPECIALS, "eins", "one", "two"]
    first, one, two = range(len(SPECIALS), len(names))
    pairs = [([first], [one])] * 3 + [([first], [two])] * 9

    def rows() -> dict[str, str]:
        lines = vocabulary_map(iter(pairs), names, names, 1)
        return dict(line.split("\t") for line in lines)

    assert rows()["eins"].split()[0] == "two"
    monkeypatch.setattr(shortlist, "CELLS", 3)
    assert rows()["eins"].split()[0] == "one"


def test_what_is_not_on_the_shortlist_cannot_come(
    trained: Path, translator: Translator, tmp_path: Path
) -> None:
    convert.convert(translator, tmp_path, "float32")
    only = translator.tokenizers.target.encode("three")
    names = [translator.tokenizers.target.piece(id) for id in only]
    (tmp_path / SHORTLIST).write_text("\t" + " ".join(names) + "\n", encoding="utf-8")
    engine = Engine(tmp_path, translator.recipe, translator.tokenizers, Setting(1, 1, 2048))
    (hypotheses,) = engine.hypotheses(
        [translator.tokenizers.source.encode("acht eins")], Search.of(translator.recipe)
    )
    assert set(hypotheses[0].ids) <= {*only}


def test_pairs_are_drawn_from_the_whole_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __len__(self) -> int:
            return 100

        def __iter__(self) -> Iterator[tuple[str, str]]:
            return ((f"Satz {n}", f"sentence {n}") for n in range(100))

    whole = shortlist.draw(Stream())
    assert sorted(whole) == sorted(Stream()) and whole != [*Stream()]
    monkeypatch.setattr(shortlist, "PAIRS", 30)
    drawn = shortlist.draw(Stream())
    assert len({*drawn}) == 30 and {*drawn} < {*whole}
    assert any(int(source.split()[1]) > 90 for source, _ in drawn)
    assert drawn == shortlist.draw(Stream())
