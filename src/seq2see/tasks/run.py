"""From a recipe to a finished run directory: data, training, score card."""

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape
from torch import nn

from seq2see.batches import padding_share
from seq2see.errors import InputError
from seq2see.files import FolderLock, write_text
from seq2see.models.build import pass_tokens
from seq2see.models.directory import WEIGHTS, ModelDirectory, pick_device
from seq2see.models.init import inherit
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import card
from seq2see.tasks import run_directory
from seq2see.tasks.continuation import Overlap, Start, adapt_position, no_gain
from seq2see.tasks.finished import CARD, Finished
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.painter import Painter
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.protocol import Data, Opened, Report, Task
from seq2see.tasks.table import checked, open_directory, open_model, read_recipe, task_of
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.tasks.translator import Translator
from seq2see.text.history import History
from seq2see.training import checkpoint
from seq2see.training.distributed import World
from seq2see.training.epochs import Epochs
from seq2see.training.loop import Objective, Training
from seq2see.training.machine import product_type
from seq2see.training.passes import too_few_passes, usual_passes
from seq2see.training.report import Reporter, Validation
from seq2see.training.stages import Stages
from seq2see.training.update import workers_for

Trained = Translator | LanguageModel | PictureModel | Painter  # by the task of the recipe


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
    """Train the model of a recipe into `out`, score it on its test sets, and return it.

    It starts from fresh weights or from those of the model directory `init` that fit. With `resume`
    the run in `out` continues; a finished one, if the budget is larger now. The recipe decides what
    kind of model it is; `load`, `load_language`, `load_pictures` and `load_painter` open one kind.
    """
    with World.join() as world, FolderLock() as held:
        shown = console or Console(stderr=True, soft_wrap=True, emoji=False)
        stages = Stages(shown if world.main else Console(quiet=True))  # from here on time counts
        if isinstance(recipe, Recipe) and list(overrides):
            raise InputError("overrides go with a recipe's file or name, not with a Recipe")
        if not isinstance(recipe, Recipe):
            out = out or Path("runs") / Path(recipe).stem
            recipe = read_recipe(recipe, overrides)
        if out is None:
            raise InputError("out is missing: the directory to train into")
        checked(recipe)
        folder = Path(out)
        world.agree(run_directory.call(folder, recipe, resume))
        if world.main:
            run_directory.lock(folder, held)
        run_directory.check(folder, recipe, resume or world.restarts > 0)
        where = None if data is None else Path(data)
        origin = run_directory.parent_of(folder, None if init is None else Path(init))
        try:
            return _run(recipe, where, folder, origin, pick_device(device), stages, world, held)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(run_directory.interruption(folder)) from None


def _run(
    recipe: Recipe,
    where: Path | None,
    folder: Path,
    origin: Path | None,
    device: torch.device,
    stages: Stages,
    world: World,
    held: FolderLock,
) -> Trained:
    """Bring a run to its end: train it, extend it, or only score it."""
    finished = Finished.read(folder)
    if finished is not None:
        extended = finished.extended(recipe)
        if extended is None:
            stages.console.print(f"{folder}: {finished.hint()}", highlight=False, markup=False)
            unchanged: Trained = open_model(folder, device.type)
            return unchanged
        recipe = extended
    task = task_of(recipe)
    parent = None
    if origin is not None and not run_directory.begun(folder):
        parent = _parent(task, recipe, origin)
    with stages:
        history = run_directory.history_of(folder, parent, origin is not None)
        data: Data = task.data(where, history, stages, folder)
        del history  # of a large corpus, much memory
    world.agree(run_directory.digests(data))
    growth = run_directory.check_data(folder, data)
    if finished is not None or not (folder / WEIGHTS).exists():
        start = Start(world.device(device), origin, parent, finished, growth, held, world)
        _train(task, recipe, data, folder, start, stages)
    opened: Trained = open_model(folder, device.type)
    if world.main:
        write_scorecard(task, opened, data, folder, origin, stages)
    return opened


def evaluate_own(
    directory: str | Path,
    data: str | Path | None = None,
    test: str | None = None,
    device: str = "auto",
    merge: int | None = None,
) -> Report:
    """Score a model on a test set of its recipe's data, by default the first."""
    return evaluate_opened(open_model(directory, device, merge), directory, data, test)


def evaluate_opened(
    opened: Opened | TranslationEngine,
    directory: str | Path,
    data: str | Path | None = None,
    test: str | None = None,
) -> Report:
    """Score an opened model on a test set of its recipe's data, by default the first."""
    task = task_of(opened.recipe)
    where = None if data is None else Path(data)
    corpus = task.data(where, History.of(Path(directory)))
    if not corpus.tests:
        raise InputError(f"{directory}: the data of its recipe has no test set")
    if test is not None and test not in corpus.tests:
        raise InputError(f"--test {test}: not one of {', '.join(corpus.tests)}")
    return task.score(opened, corpus, test or corpus.tests[0])


def _train(
    task: Task, recipe: Recipe, data: Data, folder: Path, start: Start, stages: Stages
) -> None:
    """Train, from the last checkpoint if there is one, and write the chosen weights."""
    parent, world = start.parent, start.world
    with stages:
        saved = _prepare(data, folder, start, stages)
    torch.manual_seed(recipe.train.seed)
    model = task.build(data).to(start.device)
    inherited = None
    if parent is not None:
        parent_rows = task_of(parent.recipe).rows(parent)
        inherited = inherit(model, recipe, parent, task.rows(data), parent_rows)
    epochs = Epochs(data.train, recipe.train)
    passes, padding = _usual_update(recipe, epochs, model)
    if world.size > passes:
        raise too_few_passes(recipe.train, passes, world.size)
    if world.main:
        run_directory.claim(folder, recipe, data, start.origin)
    world.connect(start.device, 60 * recipe.train.timeout)
    with Reporter(folder, stages.console, task.unit, world.main, world.pids) as reporter:
        parameters = sum(weight.numel() for weight in model.parameters())
        reporter.say(f"{data.summary()} · {parameters:,} parameters · {start.device}")
        overlap, notes = dict(data.overlap), list(data.notes)
        reporter.write("data", **data.parts, left_out=data.left_out, overlap=overlap, notes=notes)
        if inherited is not None and parent is not None:
            seen = Overlap.of(data)
            reporter.say(escape(inherited.summary(parent.path)))
            reporter.say(escape(seen.summary(parent.path)))
            reporter.write("init", **inherited.values(parent), **seen.values())
        workers = workers_for(passes, start.device) if world.size == 1 else 1
        shares = f"workers: {workers}" if world.size == 1 else f"processes: {world.size}"
        reporter.say(f"padding: {padding:.1%} of the batches · {shares}")
        started = stages.started
        objective = _objective(task, data, epochs, model)
        training = _training(recipe, objective, model, folder, reporter, workers, started, world)
        digest = data.parts["train"]["sha256"]
        if saved:
            _resume(training, saved)
            adapt_position(training, start, digest)
        training.position.corpus = digest
        chosen = training.run(starts_trained=inherited is not None and not inherited.new)
        if line := no_gain(training, start):
            reporter.say(escape(line))
    if world.main:
        run_directory.write_weights(folder, chosen)
    world.share("written")
    world.leave()


def _prepare(data: Data, folder: Path, start: Start, stages: Stages) -> list[Path]:
    """Prepare the data, on rank 0 first; return the checkpoints of the run, oldest first."""
    world = start.world
    if world.main:
        run_directory.make(folder)
        run_directory.lock(folder, start.held)
    on_files = list(data.notes)
    for note in on_files:
        stages.console.print(note, highlight=False, markup=False)
    saved = checkpoint.saved_in(folder / "checkpoints")
    if world.main:
        data.prepare(folder, start.parent)
    for note in data.notes[len(on_files) :]:
        stages.console.print(note, highlight=False, markup=False)
    names = world.share([path.name for path in saved])
    if not world.main:
        data.prepare(folder, start.parent)  # with the tokenizers that rank 0 has written
    world.collect("prepared")
    return [folder / "checkpoints" / name for name in names]


def _parent(task: Task, recipe: Recipe, path: Path) -> ModelDirectory:
    """Open the model to start from, which must be of the same medium."""
    try:
        parent = open_directory(path)
    except InputError as error:
        raise InputError(f"--init {error}") from None
    if task_of(parent.recipe).medium != task.medium:
        tasks = f"task {parent.recipe.task!r}, and the recipe's is {recipe.task!r}"
        raise InputError(f"--init {path}: a model of {tasks}")
    return parent


def _usual_update(recipe: Recipe, epochs: Epochs, model: nn.Module) -> tuple[int, float]:
    """Count the passes of an average update; return the share of padding, too."""
    examples, batches = epochs(1)
    lengths = examples.lengths
    device, most = next(model.parameters()).device, pass_tokens(model)
    passes = usual_passes(lengths, batches, recipe.train.accumulate, device, most)
    return passes, padding_share(lengths, batches)


def _objective(task: Task, data: Data, epochs: Epochs, model: nn.Module) -> Objective:
    def validate(model: nn.Module, share: float) -> Validation:
        return task.validate(model, data, share)

    return Objective(epochs, task.loss, validate, pass_tokens(model))


def _training(
    recipe: Recipe,
    objective: Objective,
    model: nn.Module,
    folder: Path,
    reporter: Reporter,
    workers: int,
    started: float,
    world: World,
) -> Training:
    config = recipe.train
    device = next(model.parameters()).device
    if config.precision == "bfloat16" and product_type(config.precision, device) == torch.float32:
        products = "bfloat16 is slow on this processor; products are computed in float32"
        reporter.say(f"train.precision: {products}")
    width, saved = recipe.model.width, folder / "checkpoints"
    return Training(model, config, width, saved, objective, reporter, workers, started, world)


def _resume(training: Training, saved: list[Path]) -> None:
    try:
        training.resume(saved[-1])
        training.reporter.say(escape(f"continuing from {saved[-1]}"))
    except InputError as error:
        hint = ""
        if len(saved) > 1:
            hint = f"; without {saved[-1]} the run continues from {saved[-2].name}"
        raise InputError(f"{error}{hint}") from None


def write_scorecard(
    task: Task, opened: Opened, data: Data, folder: Path, origin: Path | None, stages: Stages
) -> None:
    """Score the model on every test set, and write `scorecard.json` beside it."""
    tests = {}
    for test in data.tests:
        with stages:
            stages(f"scoring {test}")
            report = task.score(opened, data, test)
        tests[test] = report.values
        stages.console.print(f"[bold]{escape(test)}[/bold]", highlight=False)
        for line in report.lines:
            stages.console.print(f"  {escape(line)}", highlight=False)
    init = {} if origin is None else {"init": {"model": str(origin), **Overlap.of(data).values()}}
    values = card(
        tests,
        recipe=opened.recipe.model_dump(mode="json"),
        decode=opened.recipe.decode.model_dump(),
        parameters=sum(weight.numel() for weight in opened.model.parameters()),
        corpus=data.parts,
        training=run_directory.training_facts(folder),
        **init,
    )
    write_text(folder / CARD, json.dumps(values, indent=2) + "\n")
