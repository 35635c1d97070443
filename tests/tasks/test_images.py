"""Task `images`, end to end on a few dots: train, resume, classify, evaluate, draw, and what is refused."""

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from rich.console import Console

from seq2see.cli import main as cli
from seq2see.errors import InputError
from seq2see.layers.reduction.plans import Pruning
from seq2see.layers.trace import Trace
from seq2see.models.init import Pretrained, take_over
from seq2see.models.vit import VisionTransformer
from seq2see.recipe.schema import Recipe
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.run import examine, train
from seq2see.tasks.table import load_pictures
from seq2see.training.loop import Training

RECIPE = """
task = "images"

[data]
train = "{folder}"

[model]
width = 16
heads = 2
encoder_layers = 2
dropout = 0.0
patch = 2

[train]
steps = 60
batch_sentences = 30
schedule = "linear"
lr = 0.01
warmup = 10
label_smoothing = 0.0
"""
PLACES = {"lower left": (5, 1), "upper left": (1, 1), "upper right": (1, 7)}
HEIGHT, WIDTH = 8, 10


def dot(place: tuple[int, int], number: int) -> np.ndarray[Any, Any]:
    """A bright dot of two pixels by two near a corner, on noise."""
    chance = np.random.default_rng(number)
    pixels = chance.integers(0, 60, (HEIGHT, WIDTH), dtype=np.uint8)
    row, column = place[0] + chance.integers(-1, 1), place[1] + chance.integers(-1, 1)
    pixels[row : row + 2, column : column + 2] = 250
    return pixels


class Dots:
    """Pictures of dots by their corner, and short runs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, io.StringIO()
        for i, (name, place) in enumerate(PLACES.items()):
            (folder / "data" / "train" / name).mkdir(parents=True)
            for number in range(40):
                path = folder / "data" / "train" / name / f"{number}.png"
                Image.fromarray(dot(place, 100 * i + number)).save(path)
        self.path = folder / "dots.toml"
        self.path.write_text(RECIPE.format(folder=folder / "data"), encoding="utf-8")

    def train(self, name: str, *overrides: str, **keys: Any) -> PictureModel:
        self.said = io.StringIO()
        console = Console(file=self.said, soft_wrap=True)
        model = train(
            self.path,
            out=self.folder / name,
            overrides=overrides,
            device="cpu",
            console=console,
            **keys,
        )
        assert isinstance(model, PictureModel)
        return model

    def picture(self, name: str, number: int = 999) -> Path:
        path = self.folder / f"{name}-{number}.png"
        Image.fromarray(dot(PLACES[name], number)).save(path)
        return path


@pytest.fixture(scope="module")
def dots(tmp_path_factory: pytest.TempPathFactory) -> Dots:
    return Dots(tmp_path_factory.mktemp("dots"))


@pytest.fixture(scope="module")
def model(dots: Dots) -> Path:
    dots.train("model")
    return dots.folder / "model"


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        return int(ended.value.code or 0), out, error

    return run


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def log(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_a_run_learns_and_its_card_holds_the_confusion(dots: Dots, model: Path) -> None:
    card = json.loads((model / "scorecard.json").read_text(encoding="utf-8"))
    found = card["tests"]["test"]
    assert found["accuracy"] == 1 and found["sentences"] == found["tokens"] == 12
    assert found["confusion"] == {name: {name: 4} for name in PLACES}
    assert card["corpus"]["train"]["pictures"] == 96 and card["corpus"]["val"]["pictures"] == 12
    last = log(model, "validation")[-1]
    assert last["accuracy"] == 1 and last["bleu"] is None
    assert {path.name for path in model.iterdir()} >= {
        "model.safetensors",
        "recipe.toml",
        "pictures.json",
    }


@pytest.mark.parametrize(
    "settings", [("train.steps=7", "train.checkpoint_every=3"), ("train.epochs=2",)]
)
def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    dots: Dots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    settings += (
        "augment.shift=1",
        "augment.flip=true",
        "augment.cut_out=3",
        "model.dropout=0.2",
        "train.ema=0.5",
    )
    settings += ("train.accumulate=2", "train.batch_sentences=14", "model.pool=mean")
    own = Dots(tmp_path)
    own.train("whole", *settings)
    for updates in (2, 4):
        real, done = Training._update, [0]

        def update(
            self: Training, *given: Any, real: Any = real, done: Any = done, updates: int = updates
        ) -> None:
            if done[0] == updates:
                raise SystemExit
            done[0] += 1
            real(self, *given)

        with monkeypatch.context() as context, pytest.raises(SystemExit):
            context.setattr(Training, "_update", update)
            own.train("parts", *settings, resume=True)
        torch.manual_seed(0)
    own.train("parts", *settings, resume=True)
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(
        InputError, match=r"was begun with augment\.shift = 1 and cannot go on with 2"
    ):
        own.train("parts", *settings, "augment.shift=2", resume=True)


def test_other_pictures_cannot_go_on_with_a_checkpoint(tmp_path: Path) -> None:
    own = Dots(tmp_path)
    own.train("run", "train.steps=2")
    for name in ("model.safetensors", "scorecard.json"):
        (tmp_path / "run" / name).unlink()
    Image.fromarray(dot((1, 7), 5)).save(tmp_path / "data" / "train" / "lower left" / "new.png")
    with pytest.raises(InputError, match="was begun on other data and cannot go on"):
        own.train("run", "train.steps=2", resume=True)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(dots: Dots) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        dots.train(name, "train.steps=2", "augment.shift=1", f"train.seed={seed}")
    first, again, other = (
        weights(dots.folder / name)["output.weight"] for name in ("first", "again", "other")
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_classify_tells_labels_with_their_probabilities(
    call: Call, dots: Dots, model: Path
) -> None:
    paths = [dots.picture("upper right"), dots.picture("lower left")]
    code, out, error = call("classify", "--model", model, *paths)
    assert (code, error) == (0, "")
    first, likeliest, second, _ = out.splitlines()
    label, probability, path = first.split("\t")
    assert (label, path) == ("upper right", str(paths[0])) and float(probability) > 0.5
    assert second.startswith("lower left\t")
    assert likeliest.startswith("  upper right 0.") and likeliest.count(" · ") == 2
    code, out, _ = call(
        "classify",
        "--model",
        model,
        "--json",
        "--top",
        2,
        stdin="\n".join(map(str, paths)).encode(),
    )
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["label"] for row in rows] == ["upper right", "lower left"]
    for row, path in zip(rows, paths, strict=True):
        assert row["source"] == str(path) and len(row["probabilities"]) == 2
        shares = list(row["probabilities"].values())
        assert shares == sorted(shares, reverse=True) and 0.5 < sum(shares) <= 1 + 1e-6


def test_a_picture_of_another_size_and_colour_is_converted(dots: Dots, model: Path) -> None:
    picture = Image.open(dots.picture("upper left")).convert("RGBA").resize((4 * WIDTH, 4 * HEIGHT))
    picture.save(dots.folder / "large.webp")
    opened = load_pictures(model)
    assert opened.classify([dots.folder / "large.webp"])[0].label == "upper left"
    many = opened.classify([dots.picture("upper left")] * 70)  # more than go into one batch
    assert len(many) == 70 and many[0].probabilities == pytest.approx(many[69].probabilities)


def test_mistakes_in_classifying_are_one_line(
    call: Call, dots: Dots, model: Path, trained: Path
) -> None:
    text = dots.folder / "text.png"
    text.write_text("no picture")
    assert call("classify", "--model", model, text)[1:] == (
        "",
        f"seq2see: {text}: not a picture of a known format: BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP\n",
    )
    whole = dots.picture("upper left").read_bytes()
    cut = dots.folder / "cut.png"
    cut.write_bytes(whole[: len(whole) // 2])
    for path, says in (
        (cut, "cannot read the picture: image file is truncated"),
        (dots.folder, "Is a directory"),
    ):
        code, out, error = call("classify", "--model", model, path)
        assert (code, out, len(error.splitlines())) == (2, "", 1) and error.startswith(
            f"seq2see: {path}: "
        )
        assert error.endswith(f"{says}\n")
    assert call("classify", "--model", model, "--merge", -1, cut)[0] == 2
    assert (
        call("classify", "--model", model, "--merge", 100_000, dots.picture("upper left"))[0] == 0
    )
    missing = dots.folder / "none.png"
    code, out, error = call("classify", "--model", model, dots.picture("upper left"), missing)
    assert (code, out) == (2, "")
    assert error == f"seq2see: {missing}: cannot read the picture: No such file or directory\n"
    says = f"seq2see: {trained}: a model of task 'translate', which is for seq2see translate\n"
    assert call("classify", "--model", trained, text) == (2, "", says)
    says = f"seq2see: {model}: a model of task 'images', which is for seq2see classify\n"
    for command in (["translate", "a"], ["fill", "a <mask>"], ["generate"]):
        assert call(*command, "--model", model) == (2, "", says)


def test_a_broken_model_directory_is_one_line(
    call: Call, dots: Dots, model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    saved = json.loads((broken / "pictures.json").read_text())
    (broken / "pictures.json").write_text(json.dumps(saved | {"shape": [1, 9, 10]}))
    code, _, error = call("classify", "--model", broken, dots.picture("upper left"))
    assert (
        code == 2
        and error == "seq2see: model.patch (2) must divide the 9 × 10 pixels of a picture\n"
    )
    (broken / "pictures.json").unlink()
    code, _, error = call("classify", "--model", broken, dots.picture("upper left"))
    assert (
        code == 2
        and error
        == f"seq2see: {broken / 'pictures.json'}: cannot read: No such file or directory\n"
    )


def test_evaluate_puts_a_model_to_its_test_set(call: Call, dots: Dots, model: Path) -> None:
    code, out, error = call("evaluate", "--model", model, "--json")
    assert (code, error) == (0, "")
    card = json.loads((model / "scorecard.json").read_text(encoding="utf-8"))
    assert json.loads(out) == card["tests"]["test"]
    code, out, _ = call("evaluate", "--model", model)
    assert code == 0 and "100.0% of 12 pictures guessed right" in out
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["1", "lower", "left", "4", "·", "·"],
        ["2", "upper", "left", "·", "4", "·"],
        ["3", "upper", "right", "·", "·", "4"],
    ]
    for arguments, says in (
        (["--test", "none"], "--test none: not one of test"),
        (["--beam", 2], "Missing option '--source', to translate and score a file"),
        (["--source", "a"], "Missing option '--reference', to translate and score a file"),
        (
            ["--source", "a", "--reference", "b", "--test", "c"],
            "--data and --test choose a test set of the recipe's;",
        ),
    ):
        code, out, error = call("evaluate", "--model", model, *arguments)
        assert (code, out) == (2, "") and error.startswith(f"seq2see: {says}")


def test_evaluate_serves_models_of_text_as_well(call: Call, trained: Path) -> None:
    code, out, error = call("evaluate", "--model", trained, "--json")
    card = json.loads((trained / "scorecard.json").read_text(encoding="utf-8"))["tests"]["test"]
    assert (code, error) == (0, "") and json.loads(out)["bleu"] == pytest.approx(card["bleu"])


def test_pictures_of_other_classes_are_refused(dots: Dots, model: Path, tmp_path: Path) -> None:
    own = Dots(tmp_path)
    (tmp_path / "data" / "train" / "upper left").rename(tmp_path / "data" / "train" / "lower right")
    moved = tmp_path / "moved"
    shutil.copytree(model, moved)
    own.path.replace(moved / "recipe.toml")
    with pytest.raises(
        InputError, match="these pictures have another size or other classes than those"
    ):
        examine(moved)


def test_merging_is_for_pictures_too(call: Call, dots: Dots, model: Path) -> None:
    code, out, error = call("classify", "--model", model, "--merge", 3, dots.picture("upper right"))
    assert (code, error) == (0, "") and out.startswith("upper right\t")
    assert examine(model, merge=0).values["accuracy"] == 1
    sight = load_pictures(model, merge=3).explain(dots.picture("upper right"))
    assert all(layer.shape == (2, 21, 21) for layer in sight.weights)  # drawn back on the patches
    trained, trace = (
        dots.train("merged", "train.steps=2", "reduce.kind=merge", "reduce.r=2"),
        Trace(weights=False),
    )
    trained.look(trained.read(dots.picture("upper right"))[None], trace)
    assert [int(step.real.sum()) for step in trace.reductions] == [19, 17]  # of 21
    card = json.loads((dots.folder / "merged" / "scorecard.json").read_text(encoding="utf-8"))
    assert 0 <= card["tests"]["test"]["accuracy"] <= 1
    assert examine(dots.folder / "merged").values == card["tests"]["test"]
    assert (
        examine(dots.folder / "merged", merge=0).values["perplexity"]
        != card["tests"]["test"]["perplexity"]
    )


def test_attention_is_drawn_over_the_picture(
    call: Call, dots: Dots, model: Path, tmp_path: Path
) -> None:
    picture = dots.picture("upper right")
    assert call("see", "attention", picture, "--model", model, "--out", tmp_path / "a.png") == (
        0,
        "upper right\n",
        "",
    )
    assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.05
    code, out, error = call(
        "see", "attention", picture, "--model", model, "--target", "a", "--out", tmp_path / "a.png"
    )
    assert (code, out) == (
        2,
        "",
    ) and error == "seq2see: --target 'a': an image model does not translate\n"
    code, _, error = call(
        "see", "attention", "none.png", "--model", model, "--out", tmp_path / "a.png"
    )
    assert (
        code == 2
        and error == "seq2see: none.png: cannot read the picture: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ["data.corpus=captions"],
            "data.corpus 'captions' is text, which task 'images' does not learn",
        ),
        (["data.join=2"], "data.join is for text, not for task 'images'"),
        (["data.source=de"], "data.source is for text, not for task 'images'"),
        (["tokenizer.size=99"], "tokenizer is for text, not for task 'images'"),
        (["model.positions=learned"], "model.positions is for text, not for task 'images'"),
        (["train.choose=bleu"], "train.choose is for text, not for task 'images'"),
        (['data.train=["a", "b"]'], "data.train lists files; pictures are in one folder"),
        (["augment.shift=-1"], "augment.shift = -1: input should be greater than or equal to 0"),
        (["model.pool=most"], "model.pool = 'most': input should be 'class' or 'mean'"),
        (["model.overlap=5"], "model.overlap (5) must be at most twice model.patch (2)"),
        (["model.patches=2"], "unknown key model.patches; did you mean model.patch?"),
    ],
)
def test_impossible_recipes(dots: Dots, overrides: list[str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        Recipe.load(dots.path, overrides)
    assert str(caught.value).startswith(f"{dots.path}: {says}")


@pytest.mark.parametrize("override", ["data.size=8", "data.colour=true"])
def test_a_corpus_has_the_pictures_that_it_has(override: str) -> None:
    with pytest.raises(
        InputError, match=r"data\.colour are for picture files; data\.corpus is 'digits'$"
    ):
        Recipe.load("vit-digits", [override])


@pytest.mark.parametrize(
    "override",
    ["model.patch=2", "model.overlap=1", "model.pool=mean", "augment.shift=1", "data.size=8"],
)
def test_keys_of_pictures_are_for_pictures(override: str) -> None:
    with pytest.raises(InputError, match=r" is for pictures, not for task 'translate'$"):
        Recipe.load("tiny", [override])
    with pytest.raises(
        InputError,
        match=r"data\.corpus 'digits' is pictures, which task 'translate' does not learn",
    ):
        Recipe.load("tiny", ["data.corpus=digits"])


def test_what_does_not_fit_the_pictures_is_refused_before_the_run_is_claimed(dots: Dots) -> None:
    with pytest.raises(
        InputError, match=r"^model\.patch \(3\) must divide the 8 × 10 pixels of a picture$"
    ):
        dots.train("refused", "model.patch=3")
    assert not (dots.folder / "refused" / "recipe.toml").exists()


# Beginning with another's weights


SOFT = (
    "reduce.kind=prune",
    "reduce.mode=soft",
    "reduce.thresholds=0.02",
    "reduce.penalty=5.0",
    "train.steps=6",
)


def test_pruning_is_learned_plain_then_soft_then_hard(dots: Dots, model: Path) -> None:
    soft = dots.train("soft", *SOFT, init=model)
    taken = "patches (2), row_embedding (1), column_embedding (1), class_embedding (1), encoder (32), encoder_norm (2)"
    new = "output (2) · new: plan (1)"
    assert f"41 weights taken over from {model}: {taken}, {new}\n" in dots.said.getvalue()
    learned = soft.model.plan.thresholds.tolist()
    assert learned != pytest.approx([0.01, 0.02])  # where they began
    hard = dots.train("hard", "reduce.kind=prune", "train.steps=2", init=dots.folder / "soft")
    assert f"42 weights taken over from {dots.folder / 'soft'}" in dots.said.getvalue()
    assert "new:" not in dots.said.getvalue() and "left there" not in dots.said.getvalue()
    assert type(hard.model.plan) is Pruning and hard.model.plan.thresholds.tolist() == learned
    own = dots.train(
        "own",
        "reduce.kind=prune",
        "reduce.thresholds=0.25",
        "train.steps=1",
        init=dots.folder / "soft",
    )
    assert own.model.plan.thresholds.tolist() == [0.125, 0.25]  # the recipe's, since it has some
    (event,) = log(dots.folder / "hard", "init")
    assert event["model"] == str(dots.folder / "soft") and "plan.thresholds" in event["taken"]
    dots.train("plain", "train.steps=1", "model.pool=mean", init=dots.folder / "hard")
    assert " · left there: class_embedding (1), plan (1)\n" in dots.said.getvalue()


def test_smaller_patches_begin_at_the_positions_between_those_of_larger_ones(model: Path) -> None:
    recipe = Recipe.load(model / "recipe.toml", ["model.patch=1"])
    fine, coarse = VisionTransformer(recipe.model, (1, HEIGHT, WIDTH), 7), weights(model)
    taken = take_over(fine, recipe, Pretrained.load(model, "images"))
    assert "row_embedding.weight" in taken.taken and taken.new == [
        "patches.weight"
    ]  # of 1 pixel, no longer 2 × 2
    rows, found = coarse["row_embedding.weight"], fine.row_embedding.weight
    assert rows.shape == (4, 16) and found.shape == (8, 16)
    assert torch.allclose(found[[0, -1]], rows[[0, -1]])  # nothing lies beyond the edge
    assert torch.allclose(found[1], 0.75 * rows[0] + 0.25 * rows[1], atol=1e-6)
    same = VisionTransformer(Recipe.load(model / "recipe.toml").model, (1, HEIGHT, WIDTH), 7)
    take_over(same, recipe, Pretrained.load(model, "images"))
    assert torch.equal(same.row_embedding.weight, rows)  # bit by bit


def test_pixels_mean_what_they_meant_where_the_weights_come_from(
    dots: Dots, model: Path, tmp_path: Path
) -> None:
    own = Dots(tmp_path)
    for path in (tmp_path / "data").rglob("*.png"):
        Image.open(path).point(lambda value: value // 2).save(path)  # darker pictures: another mean
    own.train("fresh", "train.steps=1")
    settings = ("train.steps=4", "train.checkpoint_every=2", "model.dropout=0.2")
    own.train("whole", *settings, init=model)
    formats = [
        json.loads((each / "pictures.json").read_text()) for each in (model, tmp_path / "whole")
    ]
    assert (
        formats[0] == formats[1] != json.loads((tmp_path / "fresh" / "pictures.json").read_text())
    )
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        real = Training._update

        def update(self: Training, *given: Any) -> None:
            if self.position.update == 3:
                raise SystemExit
            real(self, *given)

        patch.setattr(Training, "_update", update)
        own.train("parts", *settings, init=model)
    own.train("parts", *settings, resume=True)
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_what_pictures_cannot_begin_with_is_refused(
    dots: Dots, model: Path, trained: Path, pictured: Path, tmp_path: Path
) -> None:
    def refused(init: Path, *overrides: str, own: Dots = dots) -> str:
        with pytest.raises(InputError) as caught:
            own.train("refused", *overrides, init=init)
        assert not (own.folder / "refused" / "recipe.toml").exists()
        return str(caught.value).removeprefix(f"--init {init}: ")

    assert refused(trained) == "a model of task 'translate', and the recipe's is 'images'"
    assert (
        refused(pictured)
        == "is for pictures of 8 × 8 pixels × 1, and the recipe's have 8 × 10 pixels × 1"
    )
    assert refused(model, "data.colour=true").endswith(
        "of 8 × 10 pixels × 1, and the recipe's have 8 × 10 pixels × 3"
    )
    assert refused(model, "model.width=32") == "none of its matrices fits this recipe's model"
    assert refused(tmp_path) == "not a model directory: it has no model.safetensors"
    other = Dots(tmp_path)
    (tmp_path / "data" / "train" / "upper left").rename(tmp_path / "data" / "train" / "centre")
    says = "is for 3 classes, and the recipe's pictures have 3; they differ in centre, upper left"
    assert refused(model, own=other) == says
    with pytest.raises(
        InputError, match=r"^--init .*: a model of task 'images', and the recipe's is 'translate'$"
    ):
        train(
            "captions", out=tmp_path / "text", overrides=["data.limit=9"], init=model, device="cpu"
        )
