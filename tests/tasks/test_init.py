"""Starting from another model's weights (`--init`), of text and of pictures."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from seq2see.errors import InputError
from seq2see.layers.reduction.plans import Pruning
from seq2see.models.init import inherit
from seq2see.models.reduced import plan_of
from seq2see.models.vit import VisionTransformer
from seq2see.recipe.schema import Recipe
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.run import train
from seq2see.tasks.table import load_language, open_directory
from seq2see.training.loop import Training

SOFT = (
    "reduce.kind=prune",
    "reduce.mode=soft",
    "reduce.thresholds=0.02",
    "reduce.penalty=5.0",
    "train.steps=6",
)


# Text


def test_a_classifier_starts_from_a_masked_models_weights(captions: Any) -> None:
    masked = captions.model("masked")
    model = captions.train("classify", "begun", "data.limit=60", init=masked)
    copied = "target_embedding (1), encoder (32), encoder_norm (2)"
    summary = f"35 weights copied from {masked}: {copied} · new: output (2)"
    assert f"{summary} · left behind: output (1)" in captions.said.getvalue()
    (event,) = captions.log("begun", "init")
    assert event["model"] == str(masked) and len(event["sha256"]) == 64
    assert len(event["taken"]) == 35
    assert event["new"] == ["output.weight", "output.bias"] and event["left"] == ["output.bias"]
    for name in ("words.source.txt", "words.target.txt"):
        vocabulary = (captions.folder / "begun" / name).read_bytes()
        assert (masked / name).read_bytes() == vocabulary
    assert isinstance(model, LanguageModel)
    assert len(model.tokenizers.target) == len(load_language(masked).tokenizers.target)


def test_labels_keep_their_output_rows_only_if_they_mean_the_same(captions: Any) -> None:
    number = captions.model("classify")
    captions.train("classify", "number", init=number, steps=1)
    assert "new:" not in captions.said.getvalue()
    settings = ("data.labels=language", "tokenizer.kind=unigram", "tokenizer.size=300")
    captions.train("classify", "language-labels", *settings, steps=1)
    parent = captions.folder / "language-labels"
    captions.train("classify", "other", "data.labels=number", *settings[1:], init=parent, steps=1)
    assert "new: output (2) · left behind: output (2)" in captions.said.getvalue()


def test_a_run_starts_from_the_parents_bits_and_resumes_with_them(
    captions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked, start = captions.model("masked"), dict[str, torch.Tensor]()

    def update(self: Training, *_: Any) -> None:
        start.update({name: weight.clone() for name, weight in self.model.state_dict().items()})
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(Training, "_update", update)
        captions.train("language", "again", init=masked)
    for name, tensor in captions.weights("masked").items():
        assert torch.equal(start[name], tensor)
    says = r"again: was begun with .*masked and cannot continue with --init .*language"
    with pytest.raises(InputError, match=says):
        captions.train("language", "again", init=captions.model("language"), resume=True)
    captions.train("language", "again", resume=True)
    assert len(captions.log("again", "init")) == 2  # once for each start
    captions.train("language", "whole", init=masked)
    assert captions.equal("again", "whole")


def test_a_translation_model_starts_from_a_masked_models_encoder(captions: Any) -> None:
    # The masked model reads German, the source here: its embedding moves to that side.
    swap = ("data.source=de", "data.target=en", "train.validate_sentences=2")
    masked = captions.model("masked")
    translator = captions.train("translate", "translate", *swap, init=masked, steps=2)
    said = captions.said.getvalue()
    copied = "source_embedding (1), encoder (32), encoder_norm (2)"
    assert f"35 weights copied from {masked}: {copied}" in said
    assert "new: target_embedding (1), decoder (" in said
    assert translator.tokenizers.languages == ("de", "en")
    parent = captions.folder / "translate"
    again = captions.train("translate", "more", *swap, init=parent, steps=1)
    said = captions.said.getvalue()
    assert "new:" not in said and "left behind" not in said
    assert type(again) is type(translator)


def test_a_run_that_gained_nothing_over_its_parent_says_so(
    captions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = captions.model("language")
    # The parent's weights are the best, whatever they are trained to.
    monkeypatch.setattr(Training, "_score", lambda self, _: -0.5 - self.position.update)
    for resume in (False, True):  # the score of the start outlasts the end of a process
        with monkeypatch.context() as context:
            context.setattr(Training, "_choose", interrupted)
            with pytest.raises(KeyboardInterrupt):
                captions.train("language", "worse", init=parent, resume=resume, steps=3)
    captions.train("language", "worse", init=parent, resume=True, steps=3)
    figures = "validation loss 0.500 before and 3.500 at best since"
    assert (
        f"the run gained nothing over the weights it started from: {figures}; "
        "a lower train.lr or a larger budget may help\n"
    ) in captions.said.getvalue()
    (event,) = captions.log("worse", "start")
    assert event["loss"] > 0 and event["perplexity"] > 1


def interrupted(self: Training) -> None:
    raise KeyboardInterrupt


def test_a_run_that_gained_says_nothing(captions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "_score", lambda self, _: float(self.position.update))
    captions.train("language", "better", init=captions.model("language"), steps=2)
    assert "gained nothing" not in captions.said.getvalue()
    assert "validation before the first update · loss " in captions.said.getvalue()


def test_weights_that_are_partly_new_are_not_compared(captions: Any) -> None:
    captions.train("classify", "partly", init=captions.model("masked"), steps=1)
    assert captions.log("partly", "start") == []


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["model.width=16"], r"none of its matrices fits this recipe's model$"),
        (
            ["tokenizer.kind=bpe"],
            r"has tokenizer.kind = 'words', and the recipe says 'bpe'; ids would differ in mean",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    captions: Any, overrides: list[str], says: str
) -> None:
    masked = captions.model("masked")
    with pytest.raises(InputError, match=rf"^--init {masked}: {says}"):
        captions.train("masked", "refused", *overrides, init=masked)
    assert not (captions.folder / "refused" / "recipe.toml").exists()


def test_a_model_of_other_languages_is_refused(toy: Any, trained: Path, tmp_path: Path) -> None:
    says = rf"^--init {trained}: is for de and en, and the recipe for fr and en$"
    with pytest.raises(InputError, match=says):
        train(toy.recipe("data.source=fr"), out=tmp_path / "run", init=trained, device="cpu")
    assert not (tmp_path / "run" / "recipe.toml").exists()


def test_a_directory_without_weights_is_refused(captions: Any) -> None:
    says = r"^--init .*nothing: no such model directory$"
    with pytest.raises(InputError, match=says):
        captions.train("masked", "refused", init=captions.folder / "nothing")
    assert not (captions.folder / "refused" / "recipe.toml").exists()


# Pictures


def test_pruning_is_learned_plain_then_soft_then_hard(dots: Any) -> None:
    model = dots.model()
    soft = dots.train("soft", *SOFT, init=model)
    parts = (
        "patches (2), row_embedding (1), column_embedding (1), class_embedding (1), "
        "encoder (32), encoder_norm (2), output (2)"
    )
    assert f"41 weights copied from {model}: {parts} · new: encoder (1)\n" in dots.said.getvalue()
    learned = plan_of(soft.model).thresholds.tolist()
    assert learned != pytest.approx([0.01, 0.02])  # the initial ones

    hard = dots.train("hard", "reduce.kind=prune", "train.steps=2", init=dots.folder / "soft")
    said = dots.said.getvalue()
    assert f"42 weights copied from {dots.folder / 'soft'}" in said
    assert "new:" not in said and "left behind" not in said
    plan = plan_of(hard.model)
    assert type(plan) is Pruning and plan.thresholds.tolist() == learned
    (event,) = dots.log("hard", "init")
    assert event["model"] == str(dots.folder / "soft")
    assert "encoder.plan.thresholds" in event["taken"]

    dots.train("plain", "train.steps=1", "model.pool=mean", init=dots.folder / "hard")
    assert " · left behind: class_embedding (1), encoder (1)\n" in dots.said.getvalue()


def test_thresholds_of_the_recipe_take_precedence(dots: Any) -> None:
    dots.train("soft-parent", *SOFT, init=dots.model())
    settings = ("reduce.kind=prune", "reduce.thresholds=0.25", "train.steps=1")
    own = dots.train("own", *settings, init=dots.folder / "soft-parent")
    assert plan_of(own.model).thresholds.tolist() == [0.125, 0.25]


def test_positions_of_smaller_patches_are_interpolated(dots: Any) -> None:
    model = dots.model()
    parent = open_directory(model)
    recipe = Recipe.load(model / "recipe.toml", ["model.patch=1"])
    fine = VisionTransformer(recipe.model, (1, 8, 10), 7)
    inherited = inherit(fine, recipe, parent, {}, {})
    assert "row_embedding.weight" in inherited.copied
    assert inherited.new == ["patches.weight"]  # of 1 pixel instead of 2 × 2
    coarse = dots.weights("model")["row_embedding.weight"]
    rows = fine.row_embedding.weight
    assert coarse.shape == (4, 16) and rows.shape == (8, 16)
    assert torch.allclose(rows[[0, -1]], coarse[[0, -1]])  # nothing lies beyond the edge
    assert torch.allclose(rows[1], 0.75 * coarse[0] + 0.25 * coarse[1], atol=1e-6)
    same = VisionTransformer(parent.recipe.model, (1, 8, 10), 7)
    inherit(same, parent.recipe, parent, {}, {})
    assert torch.equal(same.row_embedding.weight, coarse)  # bit for bit


def test_pixels_keep_the_parents_scale(dots: Any, own_dots: Any, killed_after: Any) -> None:
    model = dots.model()
    for path in (own_dots.folder / "data").rglob("*.png"):
        Image.open(path).point(lambda value: value // 2).save(path)  # darker: another mean
    own_dots.train("fresh", "train.steps=1")
    settings = ("train.steps=4", "train.checkpoint_every=2", "model.dropout=0.2")
    own_dots.train("whole", *settings, init=model)
    folders = (model, own_dots.folder / "whole", own_dots.folder / "fresh")
    parent, child, fresh = (
        json.loads((folder / "pictures.json").read_text()) for folder in folders
    )
    assert parent == child != fresh
    with killed_after(3):
        own_dots.train("parts", *settings, init=model)
    own_dots.train("parts", *settings, resume=True)
    assert own_dots.equal("whole", "parts")


def test_parents_that_do_not_fit_pictures_are_refused(
    dots: Any, own_dots: Any, trained: Path, pictured: Path, tmp_path: Path
) -> None:
    def refused(init: Path, *overrides: str, own: Any = dots) -> str:
        with pytest.raises(InputError) as caught:
            own.train("refused", *overrides, init=init)
        assert not (own.folder / "refused" / "recipe.toml").exists()
        return str(caught.value).removeprefix(f"--init {init}: ")

    model = dots.model()
    assert refused(trained) == "a model of task 'translate', and the recipe's is 'images'"
    size = "is for pictures of 8 × 8 pixels × 1, and the recipe's have 8 × 10 pixels × 1"
    assert refused(pictured) == size
    colour = "is for pictures of 8 × 10 pixels × 1, and the recipe's have 8 × 10 pixels × 3"
    assert refused(model, "data.colour=true") == colour
    assert refused(model, "model.width=32") == "none of its matrices fits this recipe's model"
    assert refused(tmp_path / "data") == "not a model directory: it has no recipe.toml"
    train_folder = own_dots.folder / "data" / "train"
    (train_folder / "upper left").rename(train_folder / "centre")
    classes = "is for 3 classes, and the recipe has 3; they differ in centre, upper left"
    assert refused(model, own=own_dots) == classes


def test_a_text_model_cannot_start_from_pictures(dots: Any, tmp_path: Path) -> None:
    says = r"^--init .*: a model of task 'images', and the recipe's is 'translate'$"
    out, init = tmp_path / "text", dots.model()
    with pytest.raises(InputError, match=says):
        train("captions", out=out, overrides=["data.limit=9"], init=init, device="cpu")
