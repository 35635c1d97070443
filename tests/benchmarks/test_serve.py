"""The benchmark of servers: its sentences, its tables, and the package for LibreTranslate."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tables import serving

from serve import distinct


def test_distinct_sentences_never_repeat() -> None:
    drawn = [*islice(distinct(["one", "two", "one"]), 7)]
    assert len(set(drawn)) == 7
    assert drawn[:4] == ["one", "two", "one (1)", "two (1)"]


def row(server: str, connections: int | None, **more: Any) -> dict[str, Any]:
    values = {"server": server, "connections": connections, "rate": None, "wrong": 0, "errors": 0}
    values |= {"sentences_per_second": 600.0, "of_offline": 0.8, "p50_ms": 2.5, "p99_ms": 120.0}
    values |= {"refused": 0, "memory_mb": 90.0, "ours_is": None, "generator_share": 0.02}
    return values | more


def test_the_table_has_a_line_per_server_and_counts_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about = {"label": "A", "setup": "as is", "versions": {"lib": "1.2"}, "bleu": 30.0}
    rows = [row(name, count) for name in ("seq2see", "other") for count in (1, 8, 64)]
    rows[-1] |= {"errors": 2, "wrong": 3, "ours_is": 4.5}
    result = {
        "servers": {"seq2see": about | {"versions": {}}, "other": about},
        "rows": [*rows, row("seq2see", None, rate=4.0)],
        "rounds": 3,
        "window_seconds": 20.0,
        "date": "2026-01-01T00:00:00",
        "text": "test",
        "text_sentences": 1000,
        "machine": {"processor": "P", "cores": 2},
        "offline_sentences_per_second": 750.0,
        "signature": "sig",
    }
    monkeypatch.setattr(serving, "raw", lambda name: {"load": result})
    head, _, ours, other, _, note = serving.servers().split("\n")
    assert len({line.count("|") for line in (head, ours, other)}) == 1
    assert ours.startswith("| A | 600 | 80% |  | 2.5 / 120.0 | 2.5 / 120.0 | 2.5 / 120.0 | 0 |")
    assert "| A (lib 1.2) |" in other and "| 4.50 × |" in other and "| 5 |" in other
    assert "4 a second at random, takes 2.5 ms" in note and "750 sentences/s" in note
    assert serving.sustained() == serving.NOT_YET


def test_the_table_of_random_requests_counts_answers_and_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"route": "/r", "requests": 1203, "statuses": {"200": 1200, "500": 3}}
    row |= {"failures": [[7, "status 500"]] * 3, "longest_seconds": 1.234}
    result = {"rows": [row], "model": "A", "date": "2026-01-01T00:00:00"}
    result |= {"machine": {"processor": "P", "cores": 2}}
    monkeypatch.setattr(serving, "raw", lambda name: result)
    line, _, note = serving.fuzzed().split("\n")[2:]
    assert line == "| `/r` | 1,203 | 1,200 × 200, 3 × 500 | 3 | 1.23 s |"
    assert note == "A; P, 2 cores; 2026-01-01"


def test_an_argos_package_has_what_argos_reads(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spacy = pytest.importorskip("spacy")
    ctranslate2 = pytest.importorskip("ctranslate2")
    from peers import argos_package

    home = tmp_path / "home"
    monkeypatch.setattr("sys.argv", ["argos_package.py", str(exported), str(home), "de", "en"])
    argos_package.main()
    (package,) = (home / "data/argos-translate/packages").iterdir()
    about = json.loads((package / "metadata.json").read_text())
    assert (about["from_code"], about["to_code"]) == ("de", "en")
    # Argos gives the model SentencePiece's pieces, and nothing else.
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    model = ctranslate2.Translator(str(package / "model"), device="cpu")
    texts = ["drei acht eins", "neun sieben"]
    results = model.translate_batch(pieces.encode(texts, out_type=str), beam_size=4)
    outputs = [pieces.decode(result.hypotheses[0]) for result in results]
    assert outputs == ["three eight one", "nine seven"]
    splitter = spacy.load(package / "spacy", exclude=["parser"])
    splitter.add_pipe("sentencizer")
    assert [part.text for part in splitter("Ein Hund. Zwei Hunde.").sents] == [
        "Ein Hund.",
        "Zwei Hunde.",
    ]
