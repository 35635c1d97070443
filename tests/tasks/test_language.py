"""Task `language`: generating from the command line, perplexity, and unsuitable recipes."""

import json
import math
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import load, load_language, read_recipe
from seq2see.text import corpora
from seq2see.text.ngrams import NGrams


def test_generate_writes_the_same_for_the_same_seed(call: Any, captions: Any) -> None:
    model = captions.model("language")
    code, out, error = call("generate", "--model", model, "--count", 3)
    assert (code, error) == (0, "") and len(out.splitlines()) == 3
    assert call("generate", "--model", model, "--count", 3)[1] == out
    first = out.splitlines(keepends=True)[0]
    assert call("generate", "--model", model)[1] == first  # however many are generated beside it
    assert call("generate", "--model", model, "--count", 3, "--seed", 2)[1] != out


def test_a_text_begins_with_its_prompt(call: Any, captions: Any) -> None:
    options = ["--model", captions.model("language"), "--json", "--temperature", 0, "--count", 2]
    code, out, _ = call("generate", "Der Mann", "Die", *options)
    first, second = map(json.loads, out.splitlines())
    assert code == 0 and (first["prompt"], second["prompt"]) == ("Der Mann", "Die")
    assert first["texts"][0] == first["texts"][1]  # without chance
    assert first["texts"][0]["text"].startswith("Der Mann")
    assert first["texts"][0]["log_probability"] < 0


def test_a_text_has_at_most_max_length_tokens(call: Any, captions: Any) -> None:
    model = captions.model("language")
    options = ["--max-length", 4, "--temperature", 3, "--top-k", 50, "--top-p", 0.9]
    _, text, _ = call("generate", "--model", model, *options)
    assert 1 <= len(load_language(model).tokenizers.target.encode(text.strip())) <= 5


def test_mistakes_in_generating_are_one_line(call: Any, captions: Any) -> None:
    model = captions.model("language")
    for arguments, says in (
        (["--top-p", 0], "--top-p 0 must be more than 0 and at most 1"),
        (["--temperature", "inf"], "--temperature inf must be a finite number"),
        (["Mann " * 10_000], "the prompt has 10000 tokens; prompt and continuation may have 128"),
        (
            ["--max-length", 2, "Der Mann liest"],
            "the prompt has 3 tokens; prompt and continuation may have 2",
        ),
    ):
        assert call("generate", "--model", model, *arguments) == (2, "", f"seq2see: {says}\n")
    assert call("generate", "--model", model, "--temperature", -1)[0] == 2


def test_the_score_card_has_the_perplexity_of_the_test_set(captions: Any) -> None:
    folder = captions.model("language")
    model, recipe = load_language(folder), Recipe.load(folder / "recipe.toml")
    test = corpora.load(recipe.data).tests["test"]
    rows = model.log_probabilities([target for _, target in test.pairs])
    log_p = [value for row in rows for value in row]
    scores = captions.card("language")["tests"]["test"]
    assert scores["perplexity"] == pytest.approx(math.exp(-sum(log_p) / len(log_p)), rel=1e-4)
    assert scores["tokens"] == len(log_p) and scores["sentences"] == 30
    assert not {"bleu", "confusion"} & scores.keys()
    assert 0 <= scores["accuracy"] <= 1 and scores["corpus_sha256"] == test.digest


def test_an_n_gram_model_counts_the_same_tokens(captions: Any) -> None:
    folder = captions.model("language")
    model = load_language(folder)
    corpus = corpora.load(Recipe.load(folder / "recipe.toml").data)
    encode = model.tokenizers.target.encode
    texts = [encode(text) for _, text in corpus.train.pairs]
    grams = NGrams(2, len(model.tokenizers.target), texts)
    _, sentence = corpus.tests["test"].pairs[0]
    tokens = grams.log_probabilities(encode(sentence))
    assert len(tokens) == len(model.log_probabilities([sentence])[0])


def test_validation_logs_loss_and_perplexity_alone(captions: Any) -> None:
    captions.model("language")
    (event,) = captions.log("language", "validation")
    keys = ["event", "update", "epoch", "loss", "perplexity", "best", "seconds", "samples"]
    assert list(event) == keys
    assert event["perplexity"] == pytest.approx(math.exp(event["loss"]), rel=1e-4)
    assert len(event["samples"]) == 3
    for prompt, sentence, written in event["samples"]:
        first = prompt.split(" ")[0]
        assert sentence.startswith(first) or first == "<unk>"
        assert written.startswith(prompt)


def test_a_language_model_does_nothing_else(captions: Any) -> None:
    with pytest.raises(InputError, match=r"which is for seq2see generate$"):
        load(captions.model("language"))
    model = load_language(captions.model("language"))
    for use in (model.fill, model.classify):
        with pytest.raises(InputError, match=r"^a model of task 'language' is for seq2see generat"):
            use("a")
    with pytest.raises(InputError, match=r"^--merge 2: CausalModel needs every token$"):
        load_language(captions.model("language"), merge=2)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.labels=number", "data.labels is what task 'classify' predicts: give both, or neit"),
        ("model.decoder_layers=2", "task 'language' is one stack of model.encoder_layers; leave"),
        ("model.kind=prefix", "task 'language' is one stack of model.encoder_layers; leave model."),
        ("train.choose=bleu", "train.choose 'bleu' is for task 'translate'; task 'language' choos"),
        ("reduce.kind=merge", "reduce.kind 'merge' is for encoders that are pooled or attended to"),
        ("data.corpus=digits", "data.corpus 'digits' holds pictures; task 'language' is for text"),
        ("model.pool=mean", "model.pool is for pictures, not for task 'language'"),
    ],
)
def test_impossible_recipes(own_captions: Any, override: str, says: str) -> None:
    path = own_captions.recipe("language")
    with pytest.raises(InputError) as caught:
        read_recipe(path, [override])
    assert str(caught.value).startswith(f"{path}: {says}")
