"""From a recipe to a finished run directory: its lessons, training, score card."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import safetensors.torch
import torch
from rich.console import Console
from rich.markup import escape

from seq2see.batches import padding_share, plan
from seq2see.errors import InputError, WorkError
from seq2see.files import write_atomically, write_text
from seq2see.recipe.schema import Recipe
from seq2see.scoring import card as scorecard
from seq2see.tasks.images import load_pictures
from seq2see.tasks.language import load_language
from seq2see.tasks.lessons import Examined, Lessons, TextLessons, Trained
from seq2see.tasks.picture_lessons import PictureLessons
from seq2see.tasks.translate import load, pick_device, recipe_of
from seq2see.training import checkpoint
from seq2see.training.loop import Training
from seq2see.training.report import Reporter
from seq2see.training.update import workers_for

BUDGET = {"train.steps", "train.epochs", "train.minutes"}  # what may change when a run goes on


def train(
    recipe: str | Path | Recipe,
    *,
    data: str | Path | None = None,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    resume: bool = False,
    init: str | Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> Trained:
    """Train what a recipe says into `out`, score it on its test sets, and return the model.

    It begins with fresh weights, or as far as they fit with those of the model directory `init`.
    """
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    if isinstance(recipe, Recipe) and list(overrides):
        raise InputError("overrides go with a recipe's file or name, not with a Recipe")
    if not isinstance(recipe, Recipe):
        out = out or Path("runs") / Path(recipe).stem
        recipe = Recipe.load(recipe, overrides)
    if out is None:
        raise InputError("say where to train to: out is missing")
    folder, where = Path(out), pick_device(device)
    _enter(folder, recipe, resume)
    origin = _origin(folder, None if init is None else Path(init))
    if (folder / "scorecard.json").exists():
        console.print(f"{folder}: this run is finished", highlight=False, markup=False)
        return open_model(folder, device)
    lessons = lessons_of(recipe, data)
    _same_data(folder, lessons)
    if not (folder / "model.safetensors").exists():
        _train(recipe, lessons, folder, origin, where, console)
    model = open_model(folder, device)
    write_scorecard(model, lessons, folder, console)
    return model


def lessons_of(recipe: Recipe, data: str | Path | None) -> Lessons:
    """Read the data of a recipe."""
    return (PictureLessons if recipe.task == "images" else TextLessons)(
        recipe, None if data is None else Path(data)
    )


def open_model(directory: str | Path, device: str = "auto", merge: int | None = None) -> Trained:
    """Open a model directory, whatever its task; its encoder may merge so many tokens in each layer."""
    task = recipe_of(directory).task
    if task == "images":
        return load_pictures(directory, device, merge)
    return (
        load(directory, device, merge)
        if task == "translate"
        else load_language(directory, device, merge=merge)
    )


def examine(
    directory: str | Path,
    data: str | Path | None = None,
    test: str | None = None,
    device: str = "auto",
    merge: int | None = None,
) -> Examined:
    """Put a finished model to a test set of its recipe's data, by default the first."""
    model = open_model(directory, device, merge)
    lessons = lessons_of(model.recipe, data)
    if not lessons.tests:
        raise InputError(f"{directory}: the data of its recipe has no test set")
    if test is not None and test not in lessons.tests:
        raise InputError(f"--test {test}: not one of {', '.join(lessons.tests)}")
    return lessons.examine(model, test or lessons.tests[0])


def _origin(folder: Path, given: Path | None) -> Path | None:
    """The model directory that a run begins with: the one it was begun with, if it goes on."""
    path = folder / "checkpoints" / "init.json"
    try:
        begun = Path(json.loads(path.read_bytes())["model"]) if path.exists() else None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not name a model: {error!r}") from None
    if given is not None and path.parent.exists() and begun != given.resolve():
        raise InputError(
            f"{folder}: was begun with {begun or 'fresh weights'} and cannot go on with --init {given}"
        )
    return begun if given is None else given.resolve()


def _enter(folder: Path, recipe: Recipe, resume: bool) -> None:
    """Refuse another run's directory, and a resumed run under another recipe."""
    if any(
        (folder / name).exists() for name in ("recipe.toml", "checkpoints", "model.safetensors")
    ):
        if not resume:
            raise InputError(
                f"{folder}: holds a run already; go on with --resume, or choose another --out"
            )
        _same_but_budget(folder, recipe)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: cannot write the run here: Permission denied")


def _claim(folder: Path, recipe: Recipe, lessons: Lessons, origin: Path | None) -> None:
    """Write what makes the directory ours, once nothing in the call is found wrong."""
    try:
        write_atomically(folder / "recipe.toml", recipe.save)
        (folder / "checkpoints").mkdir(exist_ok=True)
        write_text(folder / "checkpoints" / "corpus.json", json.dumps(_sums(lessons)) + "\n")
        if origin is not None:
            write_text(
                folder / "checkpoints" / "init.json", json.dumps({"model": str(origin)}) + "\n"
            )
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None


def _sums(lessons: Lessons) -> dict[str, str]:
    return {name: part["sha256"] for name, part in lessons.parts.items()}


def _same_data(folder: Path, lessons: Lessons) -> None:
    """Other text makes another vocabulary, and other scores: checkpoints cannot go on with it. So with pictures."""
    path = folder / "checkpoints" / "corpus.json"
    if path.exists() and checkpoint.saved_in(path.parent):
        try:
            same = json.loads(path.read_bytes()) == _sums(lessons)
        except ValueError as error:
            raise InputError(f"{path}: not JSON: {error}") from None
        if not same:
            raise InputError(
                f"{folder}: was begun on other data and cannot go on; train anew into another --out"
            )


def _same_but_budget(folder: Path, recipe: Recipe) -> None:
    if not (folder / "recipe.toml").exists():
        raise InputError(f"{folder}: has no recipe.toml, so it cannot be resumed")
    before, now = Recipe.load(folder / "recipe.toml").model_dump(), recipe.model_dump()
    if before["task"] != now["task"]:
        raise InputError(
            f"{folder}: was begun with task = {before['task']!r} and cannot go on with {now['task']!r}"
        )
    for section in ("data", "tokenizer", "model", "augment", "reduce", "train"):
        for key, value in now[section].items():
            name = f"{section}.{key}"
            if name not in BUDGET and before[section][key] != value:
                raise InputError(
                    f"{folder}: was begun with {name} = {before[section][key]!r} and cannot go on with {value!r}"
                )


def _train(
    recipe: Recipe,
    lessons: Lessons,
    folder: Path,
    origin: Path | None,
    device: torch.device,
    console: Console,
) -> None:
    _make(folder)
    config, saved = recipe.train, checkpoint.saved_in(folder / "checkpoints")
    lesson = lessons.prepare(folder, origin, device)
    _claim(folder, recipe, lessons, origin)
    with Reporter(folder, console, lesson.unit) as reporter:
        parameters = sum(p.numel() for p in lesson.model.parameters())
        reporter.say(f"{lesson.about} · {parameters:,} parameters · {device}")
        if lesson.taken is not None:
            taken, other = lesson.taken
            reporter.say(escape(taken.line(other.directory)))
            reporter.write("init", **taken.values(other))
        pairs = lesson.examples(1)
        batches = plan(pairs, config, epoch=1)
        workers = workers_for(pairs, batches, config.accumulate, device)
        reporter.say(
            f"padding: {padding_share(pairs, batches):.1%} of the batches · workers: {workers}"
        )
        training = Training(
            lesson.model,
            config,
            recipe.model.width,
            folder / "checkpoints",
            lesson.examples,
            lesson.validate,
            reporter,
            workers,
            lesson.collate,
        )
        if saved:
            try:
                training.resume(saved[-1])
            except InputError as error:
                older = (
                    f"; without {saved[-1]} it goes on from {saved[-2].name}"
                    if len(saved) > 1
                    else ""
                )
                raise InputError(f"{error}{older}") from None
            reporter.say(escape(f"going on from {saved[-1]}"))
        chosen = training.run()
        path = folder / "model.safetensors"
        try:
            write_atomically(path, lambda to: to.write_bytes(safetensors.torch.save(chosen)))
        except OSError as error:
            raise WorkError(
                f"{path}: cannot write the model: {error}; the checkpoints are kept"
            ) from None


def write_scorecard(model: Trained, lessons: Lessons, folder: Path, console: Console) -> None:
    """Put the model to every test set, show its scores, and write `scorecard.json` beside the model."""
    tests = {}
    for name in lessons.tests:
        found = lessons.examine(model, name)
        tests[name] = found.values
        console.print(f"[bold]{escape(name)}[/bold]", highlight=False)
        for line in found.lines:
            console.print(f"  {escape(line)}", highlight=False)
    card = scorecard.card(
        tests,
        recipe=model.recipe.model_dump(mode="json"),
        decode=model.recipe.decode.model_dump(),
        parameters=sum(p.numel() for p in model.model.parameters()),
        corpus=lessons.parts,
        training=_training_facts(folder),
    )
    write_text(folder / "scorecard.json", json.dumps(card, indent=2) + "\n")


def _training_facts(folder: Path) -> dict[str, object]:
    """How the weights came about, from the last lines of the log."""
    chosen: dict[str, object] = {}
    log = folder / "log.jsonl"
    # A killed process may have left half a line, or half a letter.
    for line in (
        log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    ):
        if line.startswith('{"event": "chosen"') and line.endswith("}"):
            chosen = json.loads(line)
    facts = {key: chosen.get(key) for key in ("weights", "seconds", "updates", "epochs")}
    return facts | {"target_tokens": chosen.get("tokens")}
