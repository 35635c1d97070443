"""Model directories: the one place that opens them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from seq2see.errors import InputError
from seq2see.models.weights import Tensors, copy_into, renamed
from seq2see.pictures.augment import Format
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers
from seq2see.text.tokenizers import Tokenizers

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class ModelDirectory:
    """A directory that holds a trained model; its parts are read when they are needed."""

    path: Path
    recipe: Recipe

    @classmethod
    def open(cls, path: str | Path) -> "ModelDirectory":
        """Read the recipe; refuse what is not the directory of a finished model."""
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such model directory")
        if (path / "engine.json").is_file():
            use = "for translate, score, evaluate and compare alone"
            raise InputError(
                f"{path}: an export for CTranslate2, {use}; give the model it was exported from"
            )
        for name in ("recipe.toml", WEIGHTS):
            if not (path / name).is_file():
                problem = "not a model directory"
                if (path / "checkpoints").is_dir():
                    problem = "its training is not finished; continue with --resume"
                raise InputError(f"{path}: {problem}: it has no {name}")
        return cls(path, Recipe.load(path / "recipe.toml"))

    @cached_property
    def tokenizers(self) -> Tokenizers:
        return tokenizers.load(self.path)

    @cached_property
    def format(self) -> Format:
        """Shape, scale and classes of the model's pictures."""
        return Format.load(self.path)

    def weights(self) -> Tensors:
        path = self.path / WEIGHTS
        try:
            return renamed(safetensors.torch.load_file(path))
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path}: cannot read the weights: {error}") from None

    def fill(self, model: nn.Module) -> None:
        """Copy the directory's weights into a model of its recipe."""
        copy_into(model, self.weights(), self.path / WEIGHTS)


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
