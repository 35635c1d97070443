"""What a new model takes over from another model's directory: how it reads, and every weight that fits."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional

from seq2see.errors import InputError
from seq2see.files import sha256
from seq2see.pictures.augment import Format
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers
from seq2see.text.tokenizers import Tokenizers
from seq2see.training import checkpoint

SHOWN = 3  # classes of those that differ
GRID = (
    "row_embedding.weight",
    "column_embedding.weight",
)  # positions of patches, in order from edge to edge


@dataclass(frozen=True)
class Pretrained:
    """Another model's directory."""

    directory: Path
    recipe: Recipe
    weights: checkpoint.Tensors

    @classmethod
    def load(cls, directory: Path, task: str) -> "Pretrained":
        """Read what a model of a task is to begin with; one of text has nothing for one of pictures."""
        path = directory / "model.safetensors"
        if not path.is_file():
            raise InputError(
                f"--init {directory}: not a model directory: it has no model.safetensors"
            )
        try:
            weights = safetensors.torch.load_file(path)
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path}: cannot read the weights: {error}") from None
        recipe = Recipe.load(directory / "recipe.toml")
        if (recipe.task == "images") != (task == "images"):
            raise InputError(
                f"--init {directory}: a model of task {recipe.task!r}, and the recipe's is {task!r}"
            )
        return cls(directory, recipe, weights)

    @cached_property
    def tokenizers(self) -> Tokenizers:
        return tokenizers.load(self.directory)

    def tokenizers_for(self, recipe: Recipe) -> Tokenizers:
        """Its own, the sides exchanged if the recipe does so: the same ids must mean the same."""
        here, there = recipe.tokenizer, self.recipe.tokenizer
        for key in ("kind", "joint"):
            if getattr(here, key) != getattr(there, key):
                wanted = f"tokenizer.{key} = {getattr(there, key)!r}, and the recipe says {getattr(here, key)!r}"
                raise InputError(
                    f"--init {self.directory}: has {wanted}; ids would not mean the same"
                )
        languages, own = (recipe.data.source, recipe.data.target), self.tokenizers
        if languages == own.languages:
            return own
        if languages == own.languages[::-1]:
            return replace(own, source=own.target, target=own.source, languages=languages)
        names = [" and ".join(each) for each in (own.languages, languages)]
        raise InputError(
            f"--init {self.directory}: is for {names[0]}, and the recipe for {names[1]}"
        )

    def format_for(self, found: Format) -> Format:
        """That of its pictures, if the recipe's have the same shape and classes: the same pixels must mean the same."""
        own = Format.load(self.directory)
        if own.shape != found.shape:
            there, here = (
                f"{height} × {width} pixels × {colours}"
                for colours, height, width in (own.shape, found.shape)
            )
            raise InputError(
                f"--init {self.directory}: is for pictures of {there}, and the recipe's have {here}"
            )
        if own.classes != found.classes:
            counts = f"is for {len(own.classes)} classes, and the recipe's pictures have {len(found.classes)}"
            odd = ", ".join(sorted({*own.classes} ^ {*found.classes})[:SHOWN]) or "their order"
            raise InputError(f"--init {self.directory}: {counts}; they differ in {odd}")
        return own


@dataclass(frozen=True)
class Taken:
    """The names of the weights that were taken over, that are new, and that were left behind."""

    taken: list[str]
    new: list[str]
    left: list[str]

    def line(self, directory: Path) -> str:
        """For a reader: how many, by the part they belong to."""
        parts = [f"{len(self.taken)} weights taken over from {directory}: {_parts(self.taken)}"]
        parts += [f"new: {_parts(self.new)}"] if self.new else []
        parts += [f"left there: {_parts(self.left)}"] if self.left else []
        return " · ".join(parts)

    def values(self, model: Pretrained) -> dict[str, Any]:
        """What the log holds of it."""
        sum_ = sha256(model.directory / "model.safetensors")
        return {
            "model": str(model.directory),
            "sha256": sum_,
            "taken": self.taken,
            "new": self.new,
            "left": self.left,
        }


@torch.no_grad()
def take_over(
    model: nn.Module, recipe: Recipe, other: Pretrained, pair: Tokenizers | None = None
) -> Taken:
    """Copy each weight whose name and shape fit and whose rows, if they are words of the pair, are the same words.

    Positions of larger or smaller patches are those in between: the same place in the picture.
    """
    taken: dict[str, str] = {}
    for name, own in checkpoint.weights(model).items():
        # A model of one side calls it target, whichever side of a translation it is.
        there = next(
            (each for each in (name, name.replace("source_", "target_")) if each in other.weights),
            None,
        )
        if there is None or (
            name == "plan.thresholds" and "thresholds" in recipe.reduce.model_fields_set
        ):
            continue  # not there, or the recipe has its own
        found = _stretched(other.weights[there], len(own)) if name in GRID else other.weights[there]
        if found.shape != own.shape:
            continue
        if pair is None or _words(name, recipe, pair) == _words(
            there, other.recipe, other.tokenizers
        ):
            own.copy_(found)
            taken[name] = there
    if not any(
        other.weights[there].dim() > 1 for there in taken.values()
    ):  # an output's bias is as good as nothing
        raise InputError(f"--init {other.directory}: none of its matrices fits this recipe's model")
    new = [name for name in checkpoint.weights(model) if name not in taken]
    return Taken(list(taken), new, sorted(other.weights.keys() - taken.values()))


def _stretched(positions: Tensor, count: int) -> Tensor:
    """Positions (n, D) from edge to edge as `count` of them: unchanged if they are as many already."""
    return functional.interpolate(positions.T[None], count, mode="linear", align_corners=False)[0].T


def _words(name: str, recipe: Recipe, pair: Tokenizers) -> object:
    """What the rows of a weight stand for: a vocabulary, the labels, or nothing in particular."""
    part = name.partition(".")[0]
    if part == "output" and recipe.task == "classify":
        return recipe.data.labels, pair.languages
    if part in ("target_embedding", "output"):
        return id(pair.target)
    return id(pair.source) if part == "source_embedding" else None


def _parts(names: Iterable[str]) -> str:
    counts = Counter(name.partition(".")[0] for name in names)
    return ", ".join(f"{part} ({count})" for part, count in counts.items())
