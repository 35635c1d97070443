"""Task `classify`: labels from the command line, the confusion matrix, unsuitable recipes."""

import json
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load_language, read_recipe

LABELS = {"singular", "plural"}


def test_classify_gives_a_label_and_all_probabilities(call: Any, captions: Any) -> None:
    model = captions.model("classify")
    texts = ["Die Männer lesen.", "", "Der Mann liest."]
    code, out, error = call("classify", "--model", model, "--json", *texts)
    assert (code, error) == (0, "")
    for text, row in zip(texts, map(json.loads, out.splitlines()), strict=True):
        probabilities = row["probabilities"]
        assert row["source"] == text and probabilities.keys() == LABELS
        assert sum(probabilities.values()) == pytest.approx(1)
        assert row["label"] == max(probabilities, key=lambda name: probabilities[name])
    code, lines, _ = call("classify", "--model", model, stdin="\n".join(texts).encode())
    assert code == 0 and [line.split("\t")[2] for line in lines.splitlines()] == texts
    assert "tokens in 'Mann" in call("classify", "--model", model, "Mann " * 200)[2]


def test_a_text_that_is_the_name_of_a_file_is_warned_of(call: Any, captions: Any) -> None:
    model = captions.model("classify")
    recipe = model / "recipe.toml"
    code, out, error = call("classify", "--model", model, recipe)
    assert code == 0 and out.endswith(f"{recipe}\n")
    assert error.startswith(f"seq2see: {recipe} is a file; its name is taken as the text. ")


def test_the_score_card_holds_the_confusion_matrix(captions: Any) -> None:
    captions.model("classify")
    scores = captions.card("classify")["tests"]["test"]
    assert scores["tokens"] == scores["sentences"] == 30
    table = scores["confusion"]
    assert table.keys() <= LABELS
    assert sum(sum(row.values()) for row in table.values()) == 30
    right = sum(table.get(name, {}).get(name, 0) for name in LABELS)
    assert scores["accuracy"] == pytest.approx(right / 30)


def test_validation_logs_its_accuracy(captions: Any) -> None:
    captions.model("classify")
    (event,) = captions.log("classify", "validation")
    keys = ["event", "update", "epoch", "loss", "perplexity", "accuracy", "best", "seconds"]
    assert list(event) == [*keys, "samples"]
    assert 0 <= event["accuracy"] <= 1 and len(event["samples"]) == 3
    assert all({right, guess} <= LABELS for _, right, guess in event["samples"])
    assert "% right" in captions.said.getvalue()


def test_a_language_is_recognised(captions: Any) -> None:
    settings = ("data.labels=language", "tokenizer.kind=unigram", "tokenizer.size=300")
    model = captions.train("classify", "which", *settings, steps=40)
    english, german = model.classify(["The man is reading a book.", "Der Mann liest ein Buch."])
    assert (english.label, german.label) == ("en", "de")
    assert captions.card("which")["tests"]["test"]["accuracy"] > 0.9


def test_a_classifier_can_merge_tokens(captions: Any) -> None:
    folder = captions.model("classify")
    (plain,) = load_language(folder).classify(["Die Männer lesen ein Buch."])
    (merging,) = load_language(folder, merge=1).classify(["Die Männer lesen ein Buch."])
    assert merging.probabilities != plain.probabilities
    assert merging.probabilities.keys() == LABELS
    assert evaluate_own(folder, merge=1).values["sentences"] == 30
    with pytest.raises(ValueError, match=r"^r \(-1\) must be a whole number of at least 0$"):
        load_language(folder, merge=-1)


def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    own_captions: Any, killed_after: Any
) -> None:
    settings = (
        "model.dropout=0.2",
        "tokenizer.kind=unigram",
        "tokenizer.size=300",
        "tokenizer.sampling=0.5",
        "train.checkpoint_every=2",
        "train.accumulate=2",
        "train.ema=0.5",
        "data.limit=60",
    )
    own_captions.train("classify", "whole", *settings, steps=5)
    with killed_after(3):
        own_captions.train("classify", "parts", *settings, steps=5, resume=True)
    own_captions.train("classify", "parts", *settings, steps=5, resume=True)
    assert own_captions.equal("whole", "parts")
    says = r"was begun with task = 'classify' and cannot continue with 'masked'"
    with pytest.raises(InputError, match=says):
        own_captions.train("masked", "parts", steps=5, resume=True)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.labels=colour", "data.labels = 'colour': input should be 'language' or 'number'"),
        ("data.join=2", "data.join (2) is for other tasks: data.labels are of single sentences"),
        ("data.labels=language", "data.labels 'language' needs one vocabulary: tokenizer.joint ="),
        ("data.corpus=multi30k", "data.labels 'number' is known of data.corpus 'captions' alone"),
        ("model.decoder_layers=2", "task 'classify' is one stack of model.encoder_layers; leave"),
        ("model.kind=prefix", "task 'classify' is one stack of model.encoder_layers; leave model."),
        ("train.choose=bleu", "train.choose 'bleu' is for task 'translate'; task 'classify' choos"),
    ],
)
def test_impossible_recipes(own_captions: Any, override: str, says: str) -> None:
    path = own_captions.recipe("classify")
    with pytest.raises(InputError) as caught:
        read_recipe(path, [override])
    assert str(caught.value).startswith(f"{path}: {says}")


def test_a_classifier_needs_labels(own_captions: Any) -> None:
    path = own_captions.recipe("classify")
    path.write_text(path.read_text().replace('labels = "number"', ""))
    with pytest.raises(InputError, match=r"data.labels is what task 'classify' predicts: give bo"):
        read_recipe(path)
