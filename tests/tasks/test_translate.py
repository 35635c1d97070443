"""Task `translate`: validation, evaluation, other kinds of model, and unsuitable recipes."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.tasks.table import load, read_recipe
from seq2see.tasks.translate import evaluate
from seq2see.tasks.translator import Translator


def test_validation_logs_perplexity_and_bleu(toy: Any, tmp_path: Path) -> None:
    settings = ("train.label_smoothing=0.0", "train.validate_sentences=4")
    toy.train(tmp_path / "run", "train.steps=2", *settings)
    lines = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    event = [event for event in map(json.loads, lines) if event["event"] == "validation"][-1]
    keys = ["event", "update", "epoch", "loss", "perplexity", "bleu", "best", "seconds", "samples"]
    assert list(event) == keys
    assert event["perplexity"] == pytest.approx(math.exp(event["loss"]), rel=1e-5)
    assert 0 <= event["bleu"] <= 100 and len(event["samples"]) == 4
    said = toy.said.getvalue()
    assert f"loss {event['loss']:.3f} · perplexity {event['perplexity']:.2f} · BLEU " in said


def test_weights_may_be_chosen_by_bleu(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", "train.steps=3", "train.choose=bleu", "train.checkpoint_every=1")
    lines = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    events = list(map(json.loads, lines))
    (chosen,) = (event for event in events if event["event"] == "chosen")
    bleu = [event["bleu"] for event in events if event["event"] == "validation"]
    assert chosen["by"] == "bleu" and chosen["score"] == max(bleu)


def test_an_evaluation_is_scores_and_errors_of_one_line_each(translator: Translator) -> None:
    sources = ["drei acht eins", "", "zwei vier"]
    result = evaluate(translator, sources, ["three eight one", "", "two five"], beam=2)
    assert result.outputs == ["three eight one", "", "two four"]
    values = result.values()
    assert values["bleu"] == result.scores.bleu < 100
    assert {"bleu", "chrf", "signature", "errors"} <= values.keys()


def test_evaluate_scores_a_model_on_its_own_test_set(call: Any, trained: Path) -> None:
    code, out, error = call("evaluate", "--model", trained, "--json")
    card = json.loads((trained / "scorecard.json").read_text(encoding="utf-8"))["tests"]["test"]
    assert (code, error) == (0, "") and json.loads(out)["bleu"] == pytest.approx(card["bleu"])


def test_the_prefix_model_translates_scores_and_explains(captions: Any) -> None:
    settings = ("model.kind=prefix", "train.validate_sentences=2")
    model = captions.train("translate", "prefix", *settings, steps=3)
    assert len(model.translate(["A man is reading."], beam=2)) == 1
    assert model.score(["A man"], ["Ein Mann"])[0] < 0
    explanation = model.explain("A man is reading.", "Ein Mann liest.")
    assert {"encoder.0.self", "decoder.1.self", "decoder.1.cross"} <= explanation.weights.keys()
    again = load(captions.folder / "prefix")
    assert again.translate(["A man is reading."]) == model.translate(["A man is reading."])


def test_a_translation_model_can_merge_tokens(trained: Path, translator: Translator) -> None:
    text = "drei acht eins zwei"
    assert load(trained, "cpu", merge=0).translate([text]) == translator.translate([text])
    merging = load(trained, "cpu", merge=2)
    assert merging.score([text], ["three"]) != translator.score([text], ["three"])


def test_a_model_without_a_reducible_encoder_cannot_merge(captions: Any) -> None:
    settings = ("model.kind=prefix", "train.validate_sentences=2")
    captions.train("translate", "unmerged", *settings, steps=1)
    with pytest.raises(InputError, match=r"^--merge 2: "):
        load(captions.folder / "unmerged", "cpu", merge=2)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ["model.kind=prefix", "model.decoder_layers=2"],
            "model.decoder_layers is for model.kind",
        ),
        (
            ["model.kind=prefix", "model.positions=rotary"],
            "model.positions 'rotary' is for one sequence",
        ),
        (["data.labels=number"], "data.labels is what task 'classify' predicts: give both, or"),
        (
            ["data.corpus=digits"],
            "data.corpus 'digits' holds pictures; task 'translate' is for text",
        ),
    ],
)
def test_impossible_recipes(own_captions: Any, overrides: list[str], says: str) -> None:
    path = own_captions.recipe("translate")
    with pytest.raises(InputError) as caught:
        read_recipe(path, overrides)
    assert str(caught.value).startswith(f"{path}: {says}")


@pytest.mark.parametrize(
    "override",
    [
        "model.patch=2",
        "model.overlap=1",
        "model.pool=mean",
        "augment.shift=1",
        "data.size=8",
        "data.colour=true",
    ],
)
def test_keys_of_pictures_are_for_pictures(override: str) -> None:
    key = override.partition("=")[0]
    key = "augment" if key.startswith("augment") else key
    with pytest.raises(InputError) as caught:
        read_recipe("tiny", [override])
    assert str(caught.value) == f"tiny: {key} is for pictures, not for task 'translate'"
