"""Task `images`, end to end on pictures of dots: train, classify, evaluate, draw, refuse."""

import json
import shutil
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
import safetensors.torch
import torch
from PIL import Image

from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load_pictures, read_recipe

CORNERS = ["lower left", "upper left", "upper right"]
HEIGHT, WIDTH = 8, 10


def test_a_run_learns_and_its_card_holds_the_confusion(dots: Any) -> None:
    model = dots.model()
    card = dots.card("model")
    scores = card["tests"]["test"]
    assert scores["accuracy"] == 1 and scores["sentences"] == scores["tokens"] == 12
    assert scores["confusion"] == {name: {name: 4} for name in CORNERS}
    assert card["corpus"]["train"]["pictures"] == 96 and card["corpus"]["val"]["pictures"] == 12
    last = dots.log("model", "validation")[-1]
    keys = ["event", "update", "epoch", "loss", "perplexity", "accuracy", "best", "seconds"]
    assert list(last) == [*keys, "samples"] and last["accuracy"] == 1
    files = {path.name for path in model.iterdir()}
    assert files >= {"model.safetensors", "recipe.toml", "pictures.json"}


@pytest.mark.parametrize(
    "settings", [("train.steps=7", "train.checkpoint_every=3"), ("train.epochs=2",)]
)
def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    own_dots: Any, killed_after: Any, settings: tuple[str, ...]
) -> None:
    settings += (
        "augment.shift=1",
        "augment.flip=true",
        "augment.cut_out=3",
        "model.dropout=0.2",
        "model.pool=mean",
        "train.ema=0.5",
        "train.accumulate=2",
        "train.batch_sentences=14",
    )
    own_dots.train("whole", *settings)
    for updates in (2, 4):
        with killed_after(updates):
            own_dots.train("parts", *settings, resume=True)
    own_dots.train("parts", *settings, resume=True)
    assert own_dots.equal("whole", "parts")
    says = r"was begun with augment\.shift = 1 and cannot continue with 2"
    with pytest.raises(InputError, match=says):
        own_dots.train("parts", *settings, "augment.shift=2", resume=True)


def test_a_run_cannot_continue_on_other_pictures(own_dots: Any) -> None:
    own_dots.train("run", "train.steps=2")
    for name in ("model.safetensors", "scorecard.json"):
        (own_dots.folder / "run" / name).unlink()
    new = own_dots.folder / "data" / "train" / "lower left" / "new.png"
    own_dots.draw(new, "upper right", 5)
    with pytest.raises(InputError, match="was begun on other data and cannot continue"):
        own_dots.train("run", "train.steps=2", resume=True)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(dots: Any) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        dots.train(name, "train.steps=2", "augment.shift=1", f"train.seed={seed}")
    assert dots.equal("first", "again") and not dots.equal("first", "other")


def test_classify_gives_labels_with_their_probabilities(call: Any, dots: Any) -> None:
    model = dots.model()
    paths = [dots.picture("upper right"), dots.picture("lower left")]
    code, out, error = call("classify", "--model", model, *paths)
    assert (code, error) == (0, "")
    first, likeliest, second, _ = out.splitlines()
    label, probability, path = first.split("\t")
    assert (label, path) == ("upper right", str(paths[0])) and float(probability) > 0.5
    assert second.startswith("lower left\t")
    assert likeliest.startswith("  upper right 0.") and likeliest.count(" · ") == 2
    stdin = "\n".join(map(str, paths)).encode()
    code, out, _ = call("classify", "--model", model, "--json", "--top", 2, stdin=stdin)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["label"] for row in rows] == ["upper right", "lower left"]
    for row, path in zip(rows, paths, strict=True):
        assert row["source"] == str(path) and len(row["probabilities"]) == 2
        shares = list(row["probabilities"].values())
        assert shares == sorted(shares, reverse=True) and 0.5 < sum(shares) <= 1 + 1e-6


def test_a_picture_of_another_size_and_colour_is_converted(dots: Any) -> None:
    picture = Image.open(dots.picture("upper left")).convert("RGBA").resize((4 * WIDTH, 4 * HEIGHT))
    picture.save(dots.folder / "large.webp")
    opened = load_pictures(dots.model())
    assert opened.classify([dots.folder / "large.webp"])[0].label == "upper left"
    many = opened.classify([dots.picture("upper left")] * 70)  # more than one batch
    assert len(many) == 70 and many[0].probabilities == pytest.approx(many[69].probabilities)


def test_files_that_are_not_pictures_are_one_line(call: Any, dots: Any) -> None:
    model = dots.model()
    text = dots.folder / "text.png"
    text.write_text("no picture")
    cut = dots.folder / "cut.png"
    whole = dots.picture("upper left").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    missing = dots.folder / "none.png"
    formats = "BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP"
    for path, says in (
        (text, f"not a picture of a known format: {formats}"),
        (cut, "cannot read the picture: image file is truncated"),
        (dots.folder, "cannot read the picture: Is a directory"),
        (missing, "cannot read the picture: No such file or directory"),
    ):
        answer = call("classify", "--model", model, dots.picture("upper left"), path)
        assert answer == (2, "", f"seq2see: {path}: {says}\n")


def test_a_model_of_pictures_does_nothing_else(call: Any, dots: Any, trained: Path) -> None:
    says = f"seq2see: {trained}: a model of task 'translate', which is for seq2see translate\n"
    assert call("classify", "--model", trained, dots.picture("upper left")) == (2, "", says)
    says = f"seq2see: {dots.model()}: a model of task 'images', which is for seq2see classify\n"
    for command in (["translate", "a"], ["fill", "a <mask>"], ["generate"]):
        assert call(*command, "--model", dots.model()) == (2, "", says)


def test_a_broken_model_directory_is_one_line(call: Any, dots: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(dots.model(), broken)
    path = broken / "pictures.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps(saved | {"shape": [1, 9, 10]}))
    says = "seq2see: model.patch (2) must divide the 9 × 10 pixels of a picture\n"
    classify = ("classify", "--model", broken, dots.picture("upper left"))
    assert call(*classify) == (2, "", says)
    path.unlink()
    says = f"seq2see: {path}: cannot read: No such file or directory\n"
    assert call(*classify) == (2, "", says)


def test_evaluate_scores_a_model_on_its_test_set(call: Any, dots: Any) -> None:
    model = dots.model()
    code, out, error = call("evaluate", "--model", model, "--json")
    assert (code, error) == (0, "")
    assert json.loads(out) == dots.card("model")["tests"]["test"]
    code, out, _ = call("evaluate", "--model", model)
    assert code == 0 and "100.0% of 12 pictures predicted right" in out
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["1", "lower", "left", "4", "·", "·"],
        ["2", "upper", "left", "·", "4", "·"],
        ["3", "upper", "right", "·", "·", "4"],
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--test", "none"], "--test none: not one of test"),
        (["--beam", 2], "Missing option '--source', to translate and score a file"),
        (["--source", "a"], "Missing option '--reference', to translate and score a file"),
        (
            ["--source", "a", "--reference", "b", "--test", "c"],
            "--data and --test choose a test set of the recipe; --source and --reference are",
        ),
    ],
)
def test_options_of_evaluate_that_do_not_fit_are_one_line(
    call: Any, dots: Any, arguments: list[Any], says: str
) -> None:
    code, out, error = call("evaluate", "--model", dots.model(), *arguments)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert error.startswith(f"seq2see: {says}")


def test_pictures_of_other_classes_are_refused(dots: Any, own_dots: Any, tmp_path: Path) -> None:
    train = own_dots.folder / "data" / "train"
    (train / "upper left").rename(train / "lower right")
    moved = tmp_path / "moved"
    shutil.copytree(dots.model(), moved)
    own_dots.path.replace(moved / "recipe.toml")
    with pytest.raises(InputError, match="the pictures differ in size or classes from the model's"):
        evaluate_own(moved)


def test_a_trained_model_can_merge_tokens(call: Any, dots: Any) -> None:
    model, picture = dots.model(), dots.picture("upper right")
    code, out, error = call("classify", "--model", model, "--merge", 3, picture)
    assert (code, error) == (0, "") and out.startswith("upper right\t")
    assert call("classify", "--model", model, "--merge", 100_000, picture)[0] == 0
    assert call("classify", "--model", model, "--merge", -1, picture)[0] == 2
    assert evaluate_own(model, merge=0).values["accuracy"] == 1
    explanation = load_pictures(model, merge=3).explain(picture)
    assert all(layer.shape == (2, 21, 21) for layer in explanation.weights)  # on all patches


def test_a_model_can_be_trained_merging(dots: Any) -> None:
    model = dots.train("merged", "train.steps=2", "reduce.kind=merge", "reduce.r=2")
    trace = Trace(weights=False)
    model.classify_pixels(model.read(dots.picture("upper right"))[None], trace)
    assert [int(step.real.sum()) for step in trace.reductions] == [19, 17]  # of 21
    scores = dots.card("merged")["tests"]["test"]
    assert 0 <= scores["accuracy"] <= 1
    assert evaluate_own(dots.folder / "merged").values == scores
    plain = evaluate_own(dots.folder / "merged", merge=0).values
    assert plain["perplexity"] != scores["perplexity"]


def test_thresholds_of_an_earlier_version_open_under_their_old_name(
    dots: Any, pruning: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(pruning, old)
    tensors = safetensors.torch.load_file(old / "model.safetensors")
    tensors["plan.thresholds"] = tensors.pop("encoder.plan.thresholds")
    safetensors.torch.save_file(tensors, old / "model.safetensors")
    now, before = load_pictures(pruning), load_pictures(old)
    assert torch.equal(
        before.model.encoder.plan.thresholds,
        now.model.encoder.plan.thresholds,
    )
    picture = pruning.parent / "digit.png"
    assert before.classify([picture]) == now.classify([picture])


def test_attention_is_drawn_over_the_picture(call: Any, dots: Any, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    options = ("--model", dots.model(), "--out", out)
    picture = dots.picture("upper right")
    assert call("see", "attention", picture, *options) == (0, "upper right\n", "")
    assert matplotlib.image.imread(out).std() > 0.05
    says = "seq2see: --target 'a': for translation, not for an image model\n"
    assert call("see", "attention", picture, *options, "--target", "a") == (2, "", says)
    says = "seq2see: none.png: cannot read the picture: No such file or directory\n"
    assert call("see", "attention", "none.png", *options) == (2, "", says)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.corpus=captions", "data.corpus 'captions': task 'images' is for pictures by class"),
        ("data.join=2", "data.join is for text, not for task 'images'"),
        ("data.source=de", "data.source is for text, not for task 'images'"),
        ("data.labels=number", "data.labels is for text, not for task 'images'"),
        ("tokenizer.size=99", "tokenizer is for text, not for task 'images'"),
        ("decode.beam=2", "decode is for text, not for task 'images'"),
        ("model.kind=prefix", "model.kind is for text, not for task 'images'"),
        ("model.positions=learned", "model.positions is for text, not for task 'images'"),
        ("train.choose=bleu", "train.choose is for text, not for task 'images'"),
        ('data.train=["a", "b"]', "data.train lists files; pictures are in one folder"),
        ("augment.shift=-1", "augment.shift = -1: input should be greater than or equal to 0"),
        ("model.pool=most", "model.pool = 'most': input should be 'class' or 'mean'"),
        ("model.overlap=5", "model.overlap (5) must be at most twice model.patch (2)"),
        ("model.patches=2", "unknown key model.patches; did you mean model.patch?"),
    ],
)
def test_impossible_recipes(dots: Any, override: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_recipe(dots.path, [override])
    assert str(caught.value).startswith(f"{dots.path}: {says}")


@pytest.mark.parametrize("override", ["data.size=8", "data.colour=true"])
def test_pictures_of_a_named_corpus_are_not_converted(override: str) -> None:
    says = (
        r"^vit-digits: data\.size and data\.colour are for picture files, "
        r"not for data\.corpus 'digits'$"
    )
    with pytest.raises(InputError, match=says):
        read_recipe("vit-digits", [override])


def test_a_patch_that_does_not_divide_the_pictures_leaves_the_directory_free(dots: Any) -> None:
    says = r"^model\.patch \(3\) must divide the 8 × 10 pixels of a picture$"
    with pytest.raises(InputError, match=says):
        dots.train("refused", "model.patch=3")
    assert not (dots.folder / "refused" / "recipe.toml").exists()
