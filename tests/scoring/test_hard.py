"""Shares of hard sentences kept, by kind."""

from seq2see.scoring.hard import Capitals, by_kind, report
from seq2see.text.hard import KINDS, generate

SENTENCES = generate("de", "en", count=12)
REFERENCES = [one.reference for one in SENTENCES if one.twin]


def test_copies_keep_everything_and_empty_lines_nothing() -> None:
    sources = [one.source for one in SENTENCES]
    copies = by_kind(SENTENCES, sources, sources[:2], "13a")
    assert list(copies) == list(KINDS)
    assert all(kind.kept == 1 and not kind.examples for kind in copies.values())
    nothing = by_kind(SENTENCES, [""] * len(sources), REFERENCES, "13a")
    assert all(kind.kept == 0 and len(kind.examples) == 2 for kind in nothing.values())


def test_capitals_are_compared_regardless_of_case() -> None:
    outputs = [one.reference.upper() if one.twin else "" for one in SENTENCES]
    capitals = by_kind(SENTENCES, outputs, REFERENCES, "13a")["capitals"]
    assert isinstance(capitals, Capitals)
    assert capitals.kept == 1 and capitals.bleu == capitals.bleu_lower_case > 99
    worse = by_kind(SENTENCES, outputs, [REFERENCES[0], "No."], "13a")["capitals"]
    assert isinstance(worse, Capitals)
    assert worse.kept == 0.5 and worse.bleu_lower_case < worse.bleu


def test_the_report_shows_what_was_lost() -> None:
    lines = report(by_kind(SENTENCES, [""] * len(SENTENCES), REFERENCES, "13a"))
    number = next(one for one in SENTENCES if one.kind == "number")
    assert f"  {number.source} → " in lines
