"""Task `diffusion`, end to end on a few scenes: train, resume, paint, evaluate, refuse."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from seq2see.errors import InputError
from seq2see.models.merged import TokenMerging
from seq2see.pictures import prompted
from seq2see.recipe.diffusion import DiffusionConfig
from seq2see.recipe.schema import Recipe
from seq2see.tasks.diffusion import Diffusion
from seq2see.tasks.painter import Painter
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load_painter, read_recipe
from seq2see.text.history import History

from .conftest import Folder

pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")

RECIPE = """
task = "diffusion"

[data]
corpus = "scenes"
limit = 24

[model]
kind = "unet"
width = 8
heads = 2
encoder_layers = 1
patch = 4
dropout = 0.1

[train]
steps = 3
batch_sentences = 6
lr = 0.01
warmup = 2
ema = 0.5

[diffusion]
channels = [8, 16]
attention_levels = [1]
steps = 2
test_pictures = 4
"""


class Scenes(Folder):
    """Short runs on the embedded scenes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "scenes.toml"
        self.path.write_text(RECIPE, encoding="utf-8")

    def train(self, name: str, *overrides: str, **keys: Any) -> Painter:
        painter = self.run(self.path, name, overrides, **keys)
        assert isinstance(painter, Painter)
        return painter


@pytest.fixture
def scenes(few_scenes: None, tmp_path: Path) -> Scenes:
    return Scenes(tmp_path)


def test_a_run_leaves_a_model_a_card_and_sheets_of_pictures(scenes: Scenes) -> None:
    painter = scenes.train("run", "train.checkpoint_every=2")
    card = scenes.card("run")
    for test in ("test", "test_combinations", "test_any"):
        scores = card["tests"][test]
        assert scores["pictures"] == scores["prompts"] == 4 and 0 <= scores["accuracy"] <= 1
        assert scores["attributes"].keys() <= {"colour", "shape", "size", "count", "relation"}
    assert card["corpus"]["train"]["pictures"] == 24
    sheets = sorted(path.name for path in (scenes.folder / "run" / "samples").iterdir())
    assert sheets == ["update-00000002.png", "update-00000003.png"]
    with Image.open(scenes.folder / "run" / "samples" / sheets[0]) as sheet:
        assert sheet.width == 4 * (4 * 32 + 6)
    figures = scenes.log("run", "validation")[-1]
    assert figures["loss"] > 0 and 0 <= figures["accuracy"] <= 1
    assert repr(painter).startswith("Painter(32 × 32 × 3, ")


@pytest.mark.parametrize(("corpus", "seconds"), [("scenes", 3 * 4 * 100 / 16), ("digits", 0)])
def test_time_to_paint_is_reserved_for_test_sets_with_a_judge(
    scenes: Scenes, monkeypatch: pytest.MonkeyPatch, corpus: str, seconds: float
) -> None:
    """Three test sets of four scenes are painted at the end, and 16 pictures at each validation."""
    now = 1000.0
    painted: list[int] = []

    def paint(painter: Painter, prompts: list[str], seeds: list[int]) -> Any:
        nonlocal now
        now += 100
        painted.append(len(prompts))
        channels, height, width = painter.format.shape
        return np.zeros((len(prompts), height, width, channels), np.uint8)

    recipe = RECIPE.replace('corpus = "scenes"\nlimit = 24', f'corpus = "{corpus}"')
    scenes.path.write_text(recipe.replace("patch = 4", "patch = 2"), encoding="utf-8")
    task = Diffusion(Recipe.load(scenes.path))
    data = task.data(None, History())
    data.prepare(scenes.folder, None)
    model = task.build(data).eval()
    monkeypatch.setattr(Painter, "paint", paint)
    monkeypatch.setattr("time.perf_counter", lambda: now)
    assert task.validate(model, data, share=0.01).scoring_seconds == seconds
    assert painted == [16]


@pytest.mark.parametrize("kind", ["unet", "dit"])
@pytest.mark.parametrize("predict", ["noise", "velocity", "flow"])
def test_every_model_learns_every_prediction(scenes: Scenes, kind: str, predict: str) -> None:
    unet = ("diffusion.channels=[8, 8]", "diffusion.attention_levels=[0]") if kind == "unet" else ()
    recipe = scenes.path.read_text(encoding="utf-8")
    if kind == "dit":
        lines = [line for line in recipe.splitlines() if not line.startswith(("channels", "att"))]
        scenes.path.write_text("\n".join(lines), encoding="utf-8")
    settings = (*unet, f"model.kind={kind}", f"diffusion.predict={predict}", "train.steps=40")
    scenes.train("run", *settings, "train.checkpoint_every=5", "data.limit=6")
    losses = [event["loss"] for event in scenes.log("run", "validation")]
    assert losses[-1] < 0.97 * losses[0]


def test_a_run_killed_and_resumed_ends_in_the_same_bits(scenes: Scenes, killed_after: Any) -> None:
    settings = ("train.steps=7", "train.checkpoint_every=3", "train.accumulate=2")
    scenes.train("whole", *settings)
    for updates in (2, 4):
        with killed_after(updates):
            scenes.train("parts", *settings, resume=True)
    scenes.train("parts", *settings, resume=True)
    assert scenes.equal("whole", "parts")
    says = r"was begun with diffusion\.predict = 'velocity' and cannot continue with 'flow'"
    with pytest.raises(InputError, match=says):
        scenes.train("parts", *settings, "diffusion.predict=flow", resume=True)


def test_every_epoch_draws_other_scenes_of_the_training_split(scenes: Scenes) -> None:
    pictures = prompted.load(read_recipe(scenes.path), None).train
    first, again, second = (pictures.epoch(number).read([0, 5]) for number in (1, 1, 2))
    assert first.prompts == again.prompts and torch.equal(first.pixels, again.pixels)
    assert first.prompts != second.prompts
    assert first.pixels.shape == (2, 3, 32, 32) and first.pixels.dtype == torch.uint8


@pytest.mark.parametrize("groups", [1, 3])
def test_the_recipe_chooses_the_number_of_groups_in_every_set(scenes: Scenes, groups: int) -> None:
    corpus = prompted.load(read_recipe(scenes.path, [f"data.groups={groups}"]), None)
    assert corpus.tests.keys() == {"test", "test_combinations"}
    for part in (corpus.train, corpus.train.epoch(2), corpus.val, *corpus.tests.values()):
        assert isinstance(part, prompted.ScenePictures)
        said = [part.drawings[line].prompt.said.groups for line in range(4)]
        assert {len(named) for named in said} == {groups}


def test_a_picture_depends_on_prompt_and_seed_alone(scenes: Scenes) -> None:
    painter = scenes.train("run")
    prompts = ["a red star", "two small blue rings above a cross", "a red star"]
    together = painter.paint(prompts, [1, 2, 3])
    assert together.shape == (3, 32, 32, 3) and together.dtype == np.uint8
    for number, prompt in enumerate(prompts):
        alone = painter.paint([prompt], [number + 1])
        assert np.abs(alone[0].astype(int) - together[number]).max() <= 1
    assert np.abs(together[0].astype(int) - together[2]).max() > 1
    opened = load_painter(scenes.folder / "run", "cpu")
    assert np.array_equal(opened.paint(prompts, [1, 2, 3]), together)


def test_guidance_of_zero_ignores_the_prompt(scenes: Scenes) -> None:
    painter = scenes.train("run", "train.steps=12")
    one, other = painter.paint(["a red star", "a ring"], [1, 1], painter.settings(guidance=0))
    assert np.array_equal(one, other)
    one, other = painter.paint(["a red star", "a ring"], [1, 1], painter.settings(guidance=20))
    assert not np.array_equal(one, other)


def test_painting_takes_a_list_of_strings(scenes: Scenes) -> None:
    painter = scenes.train("run", "train.steps=1")
    assert painter.paint([]).shape == (0, 32, 32, 3)
    with pytest.raises(TypeError, match="prompts must be a list of strings, not one string"):
        painter.paint("a red star")
    with pytest.raises(TypeError, match=r"prompts\[1\] is None; it must be a string"):
        painter.paint(["a red star", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="2 seeds are given for 1 prompts"):
        painter.paint(["a red star"], [1, 2])


def test_watching_shows_every_step_with_its_attention(scenes: Scenes) -> None:
    painter = scenes.train("run")
    steps = painter.watch("a red star", settings=painter.settings(steps=3))
    assert [step.number for step in steps] == [1, 2, 3]
    trace = steps[0].trace
    assert trace is not None
    assert trace.weights["down.1.cross"].shape == (1, 2, 4 * 4, 3)  # heads, positions, words
    assert not any(name.endswith(".self") for name in trace.weights)
    last = painter.format.pixels(steps[-1].x)[0].permute(1, 2, 0).numpy()
    assert np.array_equal(last, painter.paint(["a red star"], [1], painter.settings(steps=3))[0])


def test_evaluate_repeats_the_score_card(scenes: Scenes) -> None:
    scenes.train("run")
    report = evaluate_own(scenes.folder / "run", test="test_combinations")
    expected = scenes.card("run")["tests"]["test_combinations"]
    for values in (report.values, expected):
        del values["seconds_per_picture"]
    assert report.values == expected


def test_a_child_begins_with_the_weights_of_its_parent(scenes: Scenes) -> None:
    scenes.train("parent")
    scenes.train("child", "train.steps=1", "train.lr=1e-12", init=scenes.folder / "parent")
    parent, child = scenes.weights("parent"), scenes.weights("child")
    assert all(torch.allclose(parent[name], child[name], atol=1e-6) for name in parent)


def test_the_recipe_chooses_the_times_of_training(scenes: Scenes) -> None:
    scenes.train("uniform", "train.steps=1")
    scenes.train("noisier", "train.steps=1", "diffusion.times=logit_normal")
    assert not scenes.equal("uniform", "noisier")


def test_noisy_epochs_are_the_first_of_training_alone(scenes: Scenes) -> None:
    recipe = Recipe.load(scenes.path, ["diffusion.noisy_epochs=1"])
    data = Diffusion(recipe).data(None, History())
    data.prepare(scenes.folder, None)
    lines = range(20)
    assert data.train(1).batch(lines).draws.time.min() >= 0.97
    for examples in (data.train(2), data.validation()):
        assert examples.batch(lines).draws.time.min() < 0.9


def test_noisy_epochs_are_refused_for_a_child(scenes: Scenes) -> None:
    scenes.train("parent", "train.steps=1")
    with pytest.raises(InputError, match=r"--init .*parent: diffusion\.noisy_epochs = 2 is for"):
        scenes.train("child", "diffusion.noisy_epochs=2", init=scenes.folder / "parent")


def test_the_log_says_what_noisy_epochs_take(scenes: Scenes) -> None:
    scenes.train("plain", "train.steps=1")
    assert "noisy_epochs" not in scenes.said.getvalue()
    scenes.train("noisy", "train.steps=1", "diffusion.noisy_epochs=2")
    assert "the first 48 pictures train times above 0.97 alone" in scenes.said.getvalue()


def test_the_recipe_chooses_the_shift_of_the_steps(scenes: Scenes) -> None:
    painter = scenes.train("run", "train.steps=1", "diffusion.shift=2.5")
    assert painter.settings().shift == 2.5


def test_a_child_may_paint_larger_pictures(scenes: Scenes) -> None:
    scenes.train("parent")
    settings = ("data.size=48", "train.steps=1", "train.lr=1e-12")
    painter = scenes.train("child", *settings, init=scenes.folder / "parent")
    parent, child = scenes.weights("parent"), scenes.weights("child")
    assert all(torch.allclose(parent[name], child[name], atol=1e-6) for name in parent)
    assert painter.paint(["a red star"]).shape == (1, 48, 48, 3)


def test_pictures_with_captions_are_painted_too(scenes: Scenes, own_dots: Any) -> None:
    recipe = RECIPE.replace('corpus = "scenes"\nlimit = 24', f'train = "{own_dots.folder}/data"')
    scenes.path.write_text(recipe.replace("patch = 4", "patch = 1"), encoding="utf-8")
    painter = scenes.train("run")
    assert painter.paint(["upper right"]).shape == (1, 8, 10, 1)
    assert set(painter.format.words) == {"upper", "lower", "left", "right"}
    assert scenes.card("run")["tests"]["test"].keys() == {"loss", "pictures", "corpus_sha256"}
    with pytest.raises(InputError, match=r"^caption in train \('\w+ \w+'…\) has 2 words; at"):
        scenes.train("short", "data.max_length=1")
    # Other pictures are held out of the same folder, all of which the parent has seen but its own.
    scenes.train("child", init=scenes.folder / "run")
    assert "init" in scenes.card("child")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.corpus=captions", "data.corpus 'captions' is text; task 'diffusion' paints"),
        ("model.kind=gru", "model.heads is for model.kind"),
        ("tokenizer.size=99", "tokenizer is for other tasks, not for task 'diffusion'"),
        ("train.choose=bleu", "train.choose is for other tasks, not for task 'diffusion'"),
        ("diffusion.channels=[8, 12]", "diffusion.channels ([8, 12]) must be divisible by"),
        ("diffusion.attention_levels=[2]", "diffusion.attention_levels ([2]) must be levels of"),
        ("diffusion.predict=velocty", "diffusion.predict = 'velocty'"),
        ("diffusion.guidence=2", "unknown key diffusion.guidence; did you mean"),
        (
            "data.max_length=19",
            "data.max_length (19) must be at least 20, the words of the longest",
        ),
        ("data.groups=4", "data.groups = 4"),
    ],
)
def test_impossible_recipes(scenes: Scenes, override: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_recipe(scenes.path, [override])
    assert str(caught.value).startswith(f"{scenes.path}: {says}")


@pytest.mark.parametrize("key", DiffusionConfig.model_fields)
@pytest.mark.parametrize("value", ["-1", "nan", "[]", "wrong", "{ a = 1 }"])
def test_no_key_takes_a_value_of_another_kind(scenes: Scenes, key: str, value: str) -> None:
    if (key, value) == ("attention_levels", "[]"):
        return  # attention in the middle alone
    with pytest.raises(InputError) as caught:
        read_recipe(scenes.path, [f"diffusion.{key}={value}"])
    message = str(caught.value)
    assert message.startswith(f"{scenes.path}: diffusion.{key}") and "\n" not in message


def test_pictures_that_do_not_fit_the_model_are_refused(scenes: Scenes) -> None:
    with pytest.raises(InputError, match=r"height \(32\) must be divisible by 10"):
        scenes.train("run", "model.patch=5")


def test_other_tasks_refuse_what_is_for_painting() -> None:
    says = r"^tatoeba: model\.kind 'unet' is for task 'diffusion', not for task 'translate'$"
    with pytest.raises(InputError, match=says):
        read_recipe("tatoeba", ["model.kind=unet"])


def test_a_classifier_judges_pictures_painted_by_class(
    call: Any, scenes: Scenes, own_dots: Any
) -> None:
    pytest.importorskip("prdc")
    recipe = RECIPE.replace('corpus = "scenes"\nlimit = 24', f'train = "{own_dots.folder}/data"')
    recipe = recipe.replace("test_pictures = 4", "test_pictures = 10")
    scenes.path.write_text(recipe.replace("patch = 4", "patch = 1"), encoding="utf-8")
    scenes.train("run")
    own_dots.train("classifier", "train.steps=40")
    options = ("--model", scenes.folder / "run", "--classifier", own_dots.folder / "classifier")
    code, said, _ = call("evaluate", *options, "--json")
    values = json.loads(said)
    assert code == 0 and values["pictures"] == 10
    assert (values["sampling"]["steps"], values["sampling"]["guidance"]) == (2, 3)
    assert values["anchors"]["real"]["accuracy"] > values["anchors"]["noise"]["accuracy"]
    real, noise = values["anchors"]["real"], values["anchors"]["noise"]
    assert real["frechet_distance"] < noise["frechet_distance"]
    code, said, _ = call("evaluate", *options)
    assert code == 0 and "Fréchet distance" in said
    code, _, error = call("evaluate", *options, "--beam", 2)
    assert code == 2 and "takes no option but --data beside --model" in error


def test_merging_changes_pictures_and_no_weights(scenes: Scenes) -> None:
    finer = ("model.patch=2", "diffusion.attention_levels=[0]", "train.steps=12")
    painter = scenes.train("run", *finer)
    merging = painter.merged(TokenMerging(0.5))
    assert merging.model.model is painter.model
    plain, merged = (one.paint(["a red star"]) for one in (painter, merging))
    assert not np.array_equal(plain, merged)
    assert np.array_equal(plain, painter.merged(TokenMerging(0.0)).paint(["a red star"]))
    with pytest.raises(InputError, match="this painter merges already"):
        merging.merged(TokenMerging(0.5))
