"""Misspelt model directories: the one that may be meant; without torch, for a fast start."""

import difflib
import os
from pathlib import Path

from seq2see.errors import InputError
from seq2see.models.unfinished import saved_in

RUNS = Path("runs")  # the folder that training writes to by default


def no_such_directory(path: Path) -> InputError:
    """The refusal of a model directory that does not exist, with a suggestion if one is near."""
    near = _nearest(path)
    hint = "" if near is None else f"; did you mean {near}?"
    return InputError(f"{path}: no such model directory{hint}")


def _nearest(path: Path) -> Path | None:
    """Find the model directory of the most similar name beside the path, or else in runs/."""
    for place in (path.parent, RUNS):
        models = {folder.name: folder for folder in sorted(place.glob("*")) if _holds_model(folder)}
        if near := difflib.get_close_matches(path.name, models, n=1):
            return models[near[0]]
    return None


def _holds_model(folder: Path) -> bool:
    """Whether a directory holds a model: trained, exported or in training."""
    # The functions of os.path return False for folders that may not be read.
    finished = any(os.path.isfile(folder / name) for name in ("model.safetensors", "engine.json"))
    checkpoints = folder / "checkpoints"
    return finished or (os.path.isdir(checkpoints) and bool(saved_in(checkpoints)))
