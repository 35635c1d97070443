"""Model directories: the one place that opens them."""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from seq2see.errors import InputError
from seq2see.models.nearest import no_such_directory
from seq2see.models.unfinished import saved_in, usable
from seq2see.models.weights import Tensors, copy_into, renamed
from seq2see.pictures.augment import Format
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers
from seq2see.text.history import History
from seq2see.text.tokenizers import Tokenizers

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class ModelDirectory:
    """A directory with a model, trained or in training; its parts are read when needed."""

    path: Path
    recipe: Recipe

    @classmethod
    def open(cls, path: str | Path) -> "ModelDirectory":
        """Read the recipe; refuse a directory without a model or a checkpoint."""
        path = Path(path)
        if not path.is_dir():
            raise no_such_directory(path)
        if (path / "engine.json").is_file():
            use = "for translate, score, evaluate and compare alone"
            raise InputError(
                f"{path}: an export for CTranslate2, {use}; give the model it was exported from"
            )
        if not (path / "recipe.toml").is_file():
            raise InputError(f"{path}: not a model directory: it has no recipe.toml")
        if not (path / WEIGHTS).is_file() and not saved_in(path / "checkpoints"):
            problem = f"has no model yet: neither {WEIGHTS} nor a checkpoint"
            raise InputError(f"{path}: {problem}; train --resume continues its training")
        return cls(path, Recipe.load(path / "recipe.toml"))

    @cached_property
    def weights_file(self) -> Path:
        """The file of the weights; of an unfinished run, those of its best checkpoint."""
        path = self.path / WEIGHTS
        if path.is_file():
            return path
        best = usable(self.path, self.recipe.train.choose)
        if best is None:
            raise InputError(f"{path}: cannot read the weights: no such file")
        file = best.weights()
        print(f"{self.path}: unfinished; using {best.about}", file=sys.stderr)
        return file

    @cached_property
    def history(self) -> History:
        """Fingerprints of the model's data."""
        return History.of(self.path)

    @cached_property
    def tokenizers(self) -> Tokenizers:
        return tokenizers.load(self.path)

    @cached_property
    def format(self) -> Format:
        """Shape, scale and classes of the model's pictures."""
        return Format.load(self.path)

    def weights(self) -> Tensors:
        """Read the weights."""
        if not (self.path / WEIGHTS).is_file():
            try:
                return self._read_weights()
            except InputError:
                # A running training may have pruned the checkpoint meanwhile: choose once more.
                vars(self).pop("weights_file", None)
        return self._read_weights()

    def _read_weights(self) -> Tensors:
        try:
            return renamed(safetensors.torch.load_file(self.weights_file))
        except (SafetensorError, OSError) as error:
            raise InputError(f"{self.weights_file}: cannot read the weights: {error}") from None

    def fill(self, model: nn.Module) -> None:
        """Copy the directory's weights into a model of its recipe."""
        copy_into(model, self.weights(), self.weights_file)


def pick_device(name: str) -> torch.device:
    """Find a device by name; `auto` is the fastest one available."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    if name not in available:
        raise InputError(f"device {name!r} is not one of auto, cpu, cuda, mps")
    if not available[name]:
        raise InputError(f"device {name!r}: no {name.upper()} device here")
    return torch.device(name)
