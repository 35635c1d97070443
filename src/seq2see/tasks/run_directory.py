"""Run directories: checks of the run that a directory holds, and its records."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

import seq2see
from seq2see.errors import InputError, WorkError
from seq2see.files import FolderLock, write_atomically, write_text
from seq2see.models.directory import WEIGHTS, ModelDirectory
from seq2see.models.unfinished import usable
from seq2see.models.weights import Tensors
from seq2see.recipe.schema import Recipe
from seq2see.tasks.finished import CARD
from seq2see.tasks.protocol import Data
from seq2see.text.history import History, other_data
from seq2see.training import checkpoint

# Keys that may change when a run continues: its budget and processes, the checkpoints that it keeps
# to look into, and how pictures are painted.
BUDGET = ("steps", "epochs", "minutes", "shard", "timeout", "keep")
CHANGEABLE = {f"train.{key}" for key in BUDGET}
PAINTING = ("sampler", "steps", "shift", "guidance", "test_pictures")
CHANGEABLE |= {f"diffusion.{key}" for key in PAINTING}
# All tables but [decode], which may change, too.
SECTIONS = ("data", "tokenizer", "model", "augment", "reduce", "train", "diffusion")


def holds_run(folder: Path) -> bool:
    """Whether a directory holds a run, even one that has saved nothing yet."""
    return any((folder / name).exists() for name in ("recipe.toml", "checkpoints", WEIGHTS))


def check(folder: Path, recipe: Recipe, resume: bool) -> None:
    """Refuse another run's directory, and to resume under another recipe."""
    if holds_run(folder):
        if not resume:
            rule = "continue it with --resume, or choose another --out"
            raise InputError(f"{folder}: holds a run already; {rule}")
        _check_recipe(folder, recipe)


def _check_recipe(folder: Path, recipe: Recipe) -> None:
    if not (folder / "recipe.toml").exists():
        raise InputError(f"{folder}: has no recipe.toml, so it cannot be resumed")
    before = Recipe.load(folder / "recipe.toml").model_dump()
    now = recipe.model_dump()
    keys = [("task", before["task"], now["task"])]
    for section in SECTIONS:
        for key, value in now[section].items():
            keys.append((f"{section}.{key}", before[section][key], value))
    for name, old, new in keys:
        if name not in CHANGEABLE and old != new:
            begun = f"was begun with {name} = {old!r}"
            raise InputError(f"{folder}: {begun} and cannot continue with {new!r}")


def lock(folder: Path, held: FolderLock) -> None:
    """Refuse a directory that another process is training into, and keep others out of it."""
    if not held.take(folder):
        raise InputError(f"{folder}: another process is training into it; choose another --out")


def parent_of(folder: Path, given: Path | None) -> Path | None:
    """The model directory that a run starts from: the recorded one, if the run continues."""
    path = folder / "checkpoints" / "init.json"
    try:
        recorded = Path(json.loads(path.read_bytes())["model"]) if path.exists() else None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not name a model: {error!r}") from None
    if given is None:
        return recorded
    if path.parent.exists() and recorded != given.resolve():
        begun = f"was begun with {recorded or 'fresh weights'}"
        raise InputError(f"{folder}: {begun} and cannot continue with --init {given}")
    return given.resolve()


def make(folder: Path) -> None:
    """Create the directory, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: cannot write the run here: Permission denied")


def claim(folder: Path, recipe: Recipe, data: Data, parent: Path | None) -> None:
    """Record what the run is made of, once the call has proved to be right."""
    try:
        write_atomically(folder / "recipe.toml", recipe.save)
        (folder / "checkpoints").mkdir(exist_ok=True)
        data.history.save(folder)
        corpus = json.dumps(digests(data))
        write_text(folder / "checkpoints" / "corpus.json", f"{corpus}\n")
        if parent is not None:
            recorded = json.dumps({"model": str(parent)})
            write_text(folder / "checkpoints" / "init.json", f"{recorded}\n")
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None


def write_weights(folder: Path, chosen: Tensors) -> None:
    """Write the weights of a model that is trained to its end."""
    path = folder / WEIGHTS
    content = safetensors.torch.save(chosen)
    try:
        write_atomically(path, lambda file: file.write_bytes(content))
    except OSError as error:
        problem = f"cannot write the model: {error}"
        raise WorkError(f"{path}: {problem}; the checkpoints are kept") from None


@dataclass(frozen=True)
class Growth:
    """A training set with all examples of before, and new ones."""

    before: int
    after: int
    left_out: int  # training examples that share a sentence with a held-out set

    def __str__(self) -> str:
        if self.after == self.before:
            return "the training pairs are in another order"
        verb = "grown" if self.after > self.before else "changed"
        return f"the corpus has {verb} from {self.before:,} to {self.after:,} training pairs"


def check_data(folder: Path, data: Data) -> Growth | None:
    """Tell a corpus that has grown; refuse other data, whose scores would differ."""
    path = folder / "checkpoints" / "corpus.json"
    if not path.exists() or not checkpoint.saved_in(path.parent):
        return None
    try:
        same = json.loads(path.read_bytes()) == digests(data)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if same:
        return None
    before = History.load(folder)
    if before is None or not data.grows:
        begun = "was begun on other data and cannot continue"
        raise InputError(f"{folder}: {begun}; train anew into another --out")
    if missing := before.missing(data.history.train):
        raise other_data(before, missing, len(before.train))
    if before.differs("val", data.history):
        begun = "was begun with another validation set and cannot continue"
        raise InputError(f"{folder}: {begun}; train anew into another --out")
    return Growth(len(before.train), len(data.history.train), data.left_out)


def history_of(folder: Path, parent: ModelDirectory | None, descends: bool) -> History:
    """The history of a run that has begun, else what its parent hands down.

    Of a run of an earlier version that `descends` from another model, it is not complete.
    """
    if parent is not None:
        return parent.history.inherited()
    if not begun(folder):
        return History()
    return History.load(folder) or History(complete=not descends, path=folder, unknown=True)


def begun(folder: Path) -> bool:
    """Whether a run has saved anything to continue from."""
    saved = checkpoint.saved_in(folder / "checkpoints")
    return bool(saved) or (folder / WEIGHTS).exists()


def interruption(folder: Path) -> str:
    """Describe an interrupted run in short lines: its last checkpoint, and the model to use."""
    saved = checkpoint.saved_in(folder / "checkpoints")
    if not saved:
        return f"{folder}: stopped before the first checkpoint\nthere is no model to use yet"
    stopped = f"{folder}: stopped; the last checkpoint is {saved[-1].name}"
    if (folder / CARD).exists():
        return f"{stopped}\nits finished model can be used as before"
    if (folder / WEIGHTS).exists():
        return f"{stopped}\nits model is finished, but not scored"
    best = usable(folder, Recipe.load(folder / "recipe.toml").train.choose)
    assert best is not None  # there is a checkpoint
    return f"{stopped}\nits model can be used already: {best.about}"


def call(folder: Path, recipe: Recipe, resume: bool) -> dict[str, Any]:
    """Facts that have to be the same for all processes of a run."""
    facts = {"seq2see": seq2see.__version__, "torch": torch.__version__, "--resume": resume}
    facts["--out"] = str(folder.resolve())
    for section, keys in recipe.model_dump(mode="json").items():
        if isinstance(keys, dict):
            facts |= {f"{section}.{key}": value for key, value in keys.items()}
        else:
            facts[section] = keys
    return facts


def digests(data: Data) -> dict[str, str]:
    """SHA-256 of the training and the validation set."""
    return {name: part["sha256"] for name, part in data.parts.items()}


def last_choice(folder: Path) -> dict[str, Any]:
    """The event of the log that says how the weights were trained and chosen; {} without one."""
    chosen: dict[str, Any] = {}
    log = folder / "log.jsonl"
    if log.exists():
        # A killed process may have left half a line, or half a character.
        for line in log.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.startswith('{"event": "chosen"') and line.endswith("}"):
                chosen = json.loads(line)
    return chosen


def training_facts(folder: Path) -> dict[str, object]:
    """Read from the log how the weights were trained."""
    chosen = last_choice(folder)
    # Seconds count from the command to the choice of the weights, without the test sets.
    names = ("weights", "seconds", "validation_seconds", "updates", "epochs")
    facts = {key: chosen.get(key) for key in names}
    return facts | {"target_tokens": chosen.get("tokens")}
