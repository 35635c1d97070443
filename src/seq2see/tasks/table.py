"""The table of tasks, and what is found through it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory, pick_device
from seq2see.recipe.schema import Recipe
from seq2see.tasks.classify import Classify
from seq2see.tasks.diffusion import Diffusion
from seq2see.tasks.images import Images
from seq2see.tasks.language import Language
from seq2see.tasks.masked import Masked
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.painter import Painter
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.protocol import Task
from seq2see.tasks.translate import Translate
from seq2see.tasks.translator import Translator

TASKS: dict[str, type[Task]] = {
    "translate": Translate,
    "language": Language,
    "masked": Masked,
    "classify": Classify,
    "images": Images,
    "diffusion": Diffusion,
}


def task_of(recipe: Recipe) -> Task:
    """The task of a recipe, which may be any in the table."""
    if recipe.task not in TASKS:
        raise InputError(f"task = {recipe.task!r}: not one of {', '.join(TASKS)}")
    return TASKS[recipe.task](recipe)


def checked(recipe: Recipe) -> Task:
    """The task of a recipe whose keys make sense for it."""
    task = task_of(recipe)
    try:
        task.check()
    except ValueError as error:
        raise InputError(str(error)) from None
    return task


def read_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe, with overrides, and check it for its task."""
    recipe = Recipe.load(path, overrides)
    _check(recipe, path)
    return recipe


def _check(recipe: Recipe, path: str | Path) -> None:
    try:
        checked(recipe)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def open_directory(path: str | Path, *tasks: str) -> ModelDirectory:
    """Open the directory of a model for one of the tasks, by default for any."""
    directory = ModelDirectory.open(path)
    _check(directory.recipe, directory.path / "recipe.toml")
    task = directory.recipe.task
    if tasks and task not in tasks:
        command = task_of(directory.recipe).command
        raise InputError(f"{path}: a model of task {task!r}, which is for {command}")
    return directory


def open_model(
    path: str | Path, device: str = "auto", merge: int | None = None, tasks: Iterable[str] = ()
) -> Any:
    """Open a model for use: what `Task.open` returns.

    With `merge`, its encoder merges that many tokens in each layer.
    """
    directory = open_directory(path, *tasks)
    return task_of(directory.recipe).open(directory, pick_device(device), merge)


def open_inside(path: str | Path) -> tuple[str, Any]:
    """Open a model to look into, on the CPU; return the name of its views, too."""
    directory = open_directory(path)
    task = task_of(directory.recipe)
    try:
        views = task.inside()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return views, task.open(directory, pick_device("cpu"), None)


def load(directory: str | Path, device: str = "auto", merge: int | None = None) -> Translator:
    """Open the directory of a translation model; see `open_model` for `merge`."""
    translator: Translator = open_model(directory, device, merge, ["translate"])
    return translator


def load_language(
    directory: str | Path, device: str = "auto", task: str | None = None, merge: int | None = None
) -> LanguageModel:
    """Open the directory of a model that generates, fills blanks or classifies text.

    With `task`, only that one is accepted; see `open_model` for `merge`.
    """
    tasks = [task] if task else ["language", "masked", "classify"]
    model: LanguageModel = open_model(directory, device, merge, tasks)
    return model


def load_pictures(
    directory: str | Path, device: str = "auto", merge: int | None = None
) -> PictureModel:
    """Open the directory of a picture classifier; see `open_model` for `merge`."""
    model: PictureModel = open_model(directory, device, merge, ["images"])
    return model


def load_painter(directory: str | Path, device: str = "auto") -> Painter:
    """Open the directory of a diffusion model."""
    painter: Painter = open_model(directory, device, tasks=["diffusion"])
    return painter
