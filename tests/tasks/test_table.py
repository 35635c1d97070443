"""The table of tasks: recipes checked for their task, and model directories opened or refused."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.errors import InputError, WorkError
from seq2see.models.directory import pick_device
from seq2see.recipe.schema import Recipe
from seq2see.recipe.toml import shipped
from seq2see.tasks.run import train
from seq2see.tasks.table import (
    TASKS,
    load,
    load_language,
    load_pictures,
    open_model,
    read_recipe,
    task_of,
)

UNKNOWN_TASK = (
    "task = 'frobnicate': not one of translate, language, masked, classify, images, diffusion"
)


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_suit_their_tasks(name: str) -> None:
    recipe = read_recipe(name)
    assert type(task_of(recipe)) is TASKS[recipe.task]


def test_an_unknown_task_is_refused_with_the_known_ones(tmp_path: Path, call: Any) -> None:
    path = tmp_path / "mine.toml"
    text = 'task = "frobnicate"\n[data]\ntrain = "pairs.tsv"\n[train]\nsteps = 5\n'
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_recipe(path)
    assert str(caught.value) == f"{path}: {UNKNOWN_TASK}"
    with pytest.raises(InputError, match=rf"^{UNKNOWN_TASK}$"):
        train(Recipe.load(path), out=tmp_path / "run")
    for command in (["train", path, "--out", tmp_path / "run"], ["bench", "train", path]):
        code, out, error = call(*command)
        assert (code, out) == (2, "")
        assert error.endswith(f"seq2see: {path}: {UNKNOWN_TASK}\n")
    assert not (tmp_path / "run").exists()


def test_a_recipe_in_python_is_checked_for_its_task(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^model\.pool is for pictures, not for task 'translate'$"
    ):
        train(toy.recipe("model.pool=mean"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_task_is_saved_before_the_tables(own_captions: Any) -> None:
    recipe = read_recipe(own_captions.recipe("classify"))
    path = own_captions.folder / "saved.toml"
    recipe.save(path)
    assert read_recipe(path) == recipe
    assert path.read_text(encoding="utf-8").startswith('task = "classify"\n')


def test_a_model_is_for_the_commands_of_its_task(
    call: Any, captions: Any, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("eins\n")
    files = ["--source", tmp_path / "a.txt", "--reference", tmp_path / "a.txt"]
    commands = {
        "translate": (["translate", "a"], ["evaluate", *files]),
        "language": (["generate", "a"],),
        "masked": (["fill", "a <mask>"],),
        "classify": (["classify", "a"],),
    }
    for model, task, use in (
        (trained, "translate", "seq2see translate"),
        (captions.model("language"), "language", "seq2see generate"),
        (captions.model("masked"), "masked", "seq2see fill"),
    ):
        says = f"seq2see: {model}: a model of task {task!r}, which is for {use}\n"
        for other in commands.keys() - {task}:
            for command in commands[other]:
                assert call(*command, "--model", model) == (2, "", says)


def test_bench_train_is_for_translation(call: Any, captions: Any) -> None:
    says = "seq2see: task = 'masked': bench train measures translation alone\n"
    assert call("bench", "train", captions.recipe("masked")) == (2, "", says)


def test_every_loader_opens_its_own_tasks(trained: Path, pictured: Path) -> None:
    assert open_model(trained, "cpu").recipe.task == "translate"
    assert open_model(pictured, "cpu").recipe.task == "images"
    says = rf"^{trained}: a model of task 'translate', which is for seq2see translate$"
    for loader in (load_language, load_pictures):
        with pytest.raises(InputError, match=says):
            loader(trained)
    says = rf"^{pictured}: a model of task 'images', which is for seq2see classify$"
    for loader in (load_language, load):
        with pytest.raises(InputError, match=says):
            loader(pictured)


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(
            trained, tmp_path / "copy", ignore=shutil.ignore_patterns("events", "checkpoints")
        )
    )


@pytest.mark.parametrize(
    "name", ["recipe.toml", "model.safetensors", "tokenizer.json", "tokenizer.model"]
)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError) as caught:
        load(copy, "cpu")
    assert name in str(caught.value) and str(copy) in str(caught.value)


def test_a_run_without_a_checkpoint_says_how_to_continue(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / "checkpoints").mkdir()
    says = "copy: has no model yet: neither model.safetensors nor a checkpoint; train --resume"
    with pytest.raises(InputError, match=says):
        load(copy, "cpu")


@pytest.mark.parametrize("damage", ["empty", "short", "garbage", "header", "pickle"])
def test_corrupt_weights_are_refused(copy: Path, damage: str) -> None:
    path = copy / "model.safetensors"
    content = path.read_bytes()
    if damage == "pickle":
        torch.save({"a": torch.zeros(1)}, path)
    else:
        damaged = {
            "empty": b"",
            "short": content[:-8],
            "garbage": b"\xff" * 99,
            "header": content[:8] + b"[" + content[9:],
        }
        path.write_bytes(damaged[damage])
    with pytest.raises(InputError, match=r"model.safetensors: cannot read the weights"):
        load(copy, "cpu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("decoder_layers = 2", "decoder_layers = 1", "unknown weight 'decoder.1."),
        ("decoder_layers = 2", "decoder_layers = 3", "no weight 'decoder.2."),
        ("width = 32", "width = 16", "has shape "),
        ("heads = 2", "heads = 5", "must be divisible by model.heads"),
        ("[tokenizer]", "[tokenizer]\njoint = false", "no weight 'source_embedding.weight'"),
    ],
)
def test_a_recipe_that_does_not_fit_the_weights_is_refused(
    copy: Path, old: str, new: str, says: str
) -> None:
    path = copy / "recipe.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        load(copy, "cpu")
    assert says in str(caught.value) and str(copy) in str(caught.value)


def test_two_vocabularies_do_not_fit_a_recipe_with_one(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", "train.steps=1", "tokenizer.joint=false", "tokenizer.size=40")
    path = tmp_path / "run" / "recipe.toml"
    path.write_text(path.read_text().replace("joint = false", "joint = true"))
    with pytest.raises(
        InputError,
        match=r"recipe.toml and tokenizer.json do not fit: tie 'all' needs one vocabulary",
    ):
        load(tmp_path / "run", "cpu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[data]", 'task = "frobnicate"\n[data]', UNKNOWN_TASK),
        (
            "[model]",
            "[model]\npool = 'mean'",
            "model.pool is for pictures, not for task 'translate'",
        ),
    ],
)
def test_a_saved_recipe_is_checked_for_its_task(copy: Path, old: str, new: str, says: str) -> None:
    path = copy / "recipe.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        open_model(copy, "cpu")
    assert str(caught.value) == f"{path}: {says}"


@pytest.mark.parametrize("beam", [1, 4])
def test_broken_weights_are_reported_in_one_line(copy: Path, beam: int) -> None:
    path = copy / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    safetensors.torch.save_file(
        {name: tensor * torch.nan for name, tensor in weights.items()}, path
    )
    with pytest.raises(WorkError, match="its weights are broken"):
        load(copy, "cpu").translate(["eins", "zwei"], beam=beam)
    with pytest.raises(WorkError, match="its weights are broken"):
        load(copy, "cpu").score(["eins"], ["one"])


def test_no_such_directory_and_no_such_device(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(InputError, match="nothing: no such model directory"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"not a model directory: it has no recipe.toml"):
        load(tmp_path)
    with pytest.raises(InputError, match="device 'abacus' is not one of auto, cpu"):
        load(trained, "abacus")
    with pytest.raises(InputError, match="device '' is not one of"):
        pick_device("")
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda", "mps")
