"""Long work on text tells how far it is."""

import re
from pathlib import Path
from typing import Any

import pytest

from seq2see.recipe.schema import DataConfig, TokenizerConfig
from seq2see.text import corpora, progress, tokenizers

PAIRS = [(f"Satz {n} ist kurz", f"sentence {n} is short") for n in range(100)]
Reports = list[tuple[str, float | None]]


@pytest.fixture
def reports() -> Reports:
    return []


def reporting(reports: Reports) -> Any:
    return lambda text, share: reports.append((text, share))


def test_items_are_watched_in_order(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "ITEMS_BETWEEN_REPORTS", 4)
    items = list(range(10))
    assert list(progress.watched(items, "counting", reporting(reports))) == items
    assert reports == [("counting", 0.0), ("counting", 0.4), ("counting", 0.8)]


def test_the_tokenizer_says_how_much_text_it_sees(reports: Reports, tmp_path: Path) -> None:
    config = TokenizerConfig(size=60)
    for _ in range(2):  # the second time it is read from the folder
        tokenizers.cached(config, "de", "en", PAIRS, tmp_path, reporting(reports))
    assert reports == [("training the tokenizer on 200 sentences", None)]
    reports.clear()
    separate = TokenizerConfig(size=40, joint=False)
    tokenizers.train(separate, "de", "en", PAIRS, reporting(reports))
    assert reports == [("training the tokenizer on 100 sentences", None)] * 2


def test_a_large_corpus_is_sampled_and_the_share_said(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizers, "TRAINING_PAIRS", 60)
    tokenizers.train(TokenizerConfig(size=50), "de", "en", PAIRS, reporting(reports))
    drawing, training = dict.fromkeys(text for text, _ in reports)
    assert drawing == "drawing 60 of 100 pairs for the tokenizer"
    found = re.fullmatch(r"training the tokenizer on (\d+) of 200 sentences", training)
    assert found and 120 <= int(found[1]) < 150


def test_words_are_counted_language_by_language(reports: Reports) -> None:
    pytest.importorskip("spacy")
    tokenizers.train(TokenizerConfig(kind="words"), "de", "en", PAIRS, reporting(reports))
    assert reports == [("counting the words of de", 0.0), ("counting the words of en", 0.0)]


def test_reading_and_holding_out_are_named(
    reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "CAPTIONS", {"train": 20, "val": 5, "test": 5})
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    (tmp_path / "pairs.tsv").write_text(text, encoding="utf-8")
    corpora.load(DataConfig(train="pairs.tsv"), tmp_path, progress=reporting(reports))
    corpora.load(DataConfig(corpus="captions", limit=10), None, progress=reporting(reports))
    assert list(dict.fromkeys(text for text, _ in reports)) == [
        "reading pairs.tsv",
        "holding out val and test from 100 pairs",
        "generating 10 captions",
    ]
