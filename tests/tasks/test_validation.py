"""Validation on a share of the set: spread over it, the same each time, with its samples."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.recipe.schema import Recipe
from seq2see.tasks.predict import FEWEST, predict, validated
from seq2see.tasks.table import open_model, task_of
from seq2see.tasks.text import distinct
from seq2see.text.history import History

CPU = torch.device("cpu")


def test_a_share_is_spread_over_the_set() -> None:
    assert validated(1000, 1.0) == list(range(1000))
    tenth = validated(1000, 0.1)
    assert len(tenth) == 100 and tenth == list(range(5, 1000, 10))
    assert len(validated(1000, 0.001)) == FEWEST
    assert validated(7, 0.001) == list(range(7))


def test_samples_are_spread_and_differ() -> None:
    texts = ["Geh.", "Geh.", "Geh.", "Lauf.", "Halt an.", "Halt an.", "Wo ist es?", "Wer ist da?"]
    assert distinct(texts, 3) == [0, 4, 7]
    assert distinct(texts, 9) == [0, 3, 4, 6, 7]
    assert distinct(["eins"], 3) == [0]


def test_predictions_on_some_lines_are_those_on_all(captions: Any) -> None:
    opened = open_model(captions.model("language"), "cpu")
    task = task_of(opened.recipe)
    data = task.data(None, History())
    _, examples = task.held_out(opened.tokenizers, data.corpus.val)  # type: ignore[attr-defined]
    every = predict(opened.model, examples, opened.recipe.train, CPU)
    some = predict(opened.model, examples, opened.recipe.train, CPU, [3, 4, 11])
    real = [len(examples.pairs[line][1]) for line in (3, 4, 11)]
    for guess, line, length in zip(some.guesses, (3, 4, 11), real, strict=True):
        assert guess[:length] == every.guesses[line][:length]
    assert some.targets == sum(real) + 3 and some.seconds > 0


@pytest.mark.parametrize("task", ["translate", "language", "masked", "classify"])
def test_text_is_validated_on_a_share(captions: Any, task: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("seq2see.tasks.predict.FEWEST", 2)
    opened = open_model(captions.model(task), "cpu")
    work = task_of(opened.recipe)
    data: Any = work.data(None, History())
    data.tokenizers = opened.tokenizers
    data.validation = work.held_out(opened.tokenizers, data.corpus.val)  # type: ignore[attr-defined]
    whole = work.validate(opened.model, data)
    half = work.validate(opened.model, data, 0.5)
    again = work.validate(opened.model, data, 0.5)
    assert whole.examples.startswith("20 of 20 sentences")
    assert half.examples.startswith("10 of 20 sentences")
    assert (whole.share, half.share) == (1.0, 0.5)
    assert half.loss != whole.loss and (half.loss, half.samples) == (again.loss, again.samples)
    assert whole.scoring_seconds > 0 and half.scoring_seconds > 0
    monkeypatch.setattr("seq2see.tasks.predict.FEWEST", 4)
    assert work.validate(opened.model, data, 0.01).share == 0.2  # more than was asked for
    sources = [source for source, *_ in half.samples]
    assert len(set(sources)) == len(sources)


def test_pictures_are_validated_on_a_share(dots: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("seq2see.tasks.predict.FEWEST", 2)
    opened = open_model(dots.model(), "cpu")
    work = task_of(opened.recipe)
    data: Any = work.data(None, History())
    result = work.validate(opened.model, data, 0.5)
    assert result.examples == "6 of 12 pictures" and result.share == 0.5
    assert result.scoring_seconds > 0


def test_the_expected_time_of_the_test_sets_grows_with_them_and_the_beam(
    toy: Any, trained: Path
) -> None:
    opened = open_model(trained, "cpu")

    def expected(beam: int, outputs: list[str], tests: int) -> float:
        recipe = Recipe.load(trained / "recipe.toml", [f"decode.beam={beam}"])
        work: Any = task_of(recipe)
        data = work.data(None, History())
        (name,) = data.corpus.tests
        data.corpus.tests.update({f"{n}": data.corpus.tests[name] for n in range(1, tests)})
        texts = [("eins zwei", "one two")] * len(outputs)
        return float(work._scoring_seconds(data, texts, outputs, 1.0))

    assert opened.recipe.decode.beam == 4
    usual = expected(4, ["one two"] * 9, 1)
    assert expected(4, ["one two"] * 9, 3) == pytest.approx(3 * usual)
    assert expected(1, ["one two"] * 9, 1) == pytest.approx(usual * 2 / 5)
    # Per letter: a model that writes too much will write less.
    assert expected(4, ["one two one two"] * 9, 1) == pytest.approx(usual / 2)
    assert expected(4, [""] * 9, 1) == pytest.approx(3 * usual)


def test_a_run_in_minutes_ends_in_time_with_everything_done(small: Any, tmp_path: Path) -> None:
    started = time.perf_counter()
    small.train("run", "train.minutes=0.07", "train.average=2")
    spent = time.perf_counter() - started
    facts = small.card("run")["training"]
    said = small.said.getvalue()
    assert spent < 4.2 + 5  # the machine may be busy
    assert 0 < facts["validation_seconds"] < 0.3 * facts["seconds"] < spent
    assert "are reserved for the last validation, that of the average and the test sets" in said
    assert small.log("run", "validation") and "bleu" in small.card("run")["tests"]["test"]


def test_a_tiny_budget_gives_a_usable_model_and_says_that_it_is_tiny(small: Any) -> None:
    small.train("run", "train.minutes=0.0001")
    facts = small.card("run")["training"]
    assert facts["updates"] == 1 and 0 < facts["epochs"] < 1
    assert len(small.log("run", "validation")) == 1
    assert "train.minutes = 0.0001 is too small: preparation took 0:0" in small.said.getvalue()
