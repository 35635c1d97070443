"""Weights of another model to start from (`--init`): its vocabulary, and every weight that fits."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.errors import InputError
from seq2see.files import sha256
from seq2see.models.directory import ModelDirectory
from seq2see.models.weights import Tensors, weights
from seq2see.pictures.augment import Format
from seq2see.recipe.schema import Recipe
from seq2see.text.tokenizers import Tokenizers

CLASSES_NAMED = 3  # of those that differ
GRID = ("row_embedding.weight", "column_embedding.weight")  # positions of patches, edge to edge
THRESHOLDS = "encoder.plan.thresholds"

Rows = dict[str, object]  # part of a model → what the rows of its matrix stand for


@dataclass(frozen=True)
class Inherited:
    """Names of the weights that were copied, that are new, and that were left behind."""

    digest: str  # SHA-256 of the parent's file
    copied: list[str]
    new: list[str]
    left: list[str]

    def summary(self, directory: Path) -> str:
        """One line with the number of weights by the part they belong to."""
        parts = [f"{len(self.copied)} weights copied from {directory}: {_parts(self.copied)}"]
        parts += [f"new: {_parts(self.new)}"] if self.new else []
        parts += [f"left behind: {_parts(self.left)}"] if self.left else []
        return " · ".join(parts)

    def values(self, parent: ModelDirectory) -> dict[str, Any]:
        """The entry of log.jsonl."""
        return {
            "model": str(parent.path),
            "sha256": self.digest,
            "taken": self.copied,
            "new": self.new,
            "left": self.left,
        }


def tokenizers_for(recipe: Recipe, parent: ModelDirectory) -> Tokenizers:
    """The parent's tokenizers, with sides exchanged if the recipe exchanges the languages."""
    for key in ("kind", "joint"):
        here, there = getattr(recipe.tokenizer, key), getattr(parent.recipe.tokenizer, key)
        if here != there:
            values = f"tokenizer.{key} = {there!r}, and the recipe says {here!r}"
            raise InputError(f"--init {parent.path}: has {values}; ids would differ in meaning")
    languages = (recipe.data.source, recipe.data.target)
    own = parent.tokenizers
    if languages == own.languages:
        return own
    if languages == own.languages[::-1]:
        return replace(own, source=own.target, target=own.source, languages=languages)
    pairs = f"{' and '.join(own.languages)}, and the recipe for {' and '.join(languages)}"
    raise InputError(f"--init {parent.path}: is for {pairs}")


def format_for(pictures: Format, parent: ModelDirectory) -> Format:
    """The parent's format, if the recipe's pictures have its shape and classes."""
    own = parent.format
    if own.shape != pictures.shape:
        there, here = (
            f"{height} × {width} pixels × {channels}"
            for channels, height, width in (own.shape, pictures.shape)
        )
        sizes = f"pictures of {there}, and the recipe's have {here}"
        raise InputError(f"--init {parent.path}: is for {sizes}")
    if own.classes != pictures.classes:
        counts = f"{len(own.classes)} classes, and the recipe has {len(pictures.classes)}"
        odd = sorted(set(own.classes) ^ set(pictures.classes))[:CLASSES_NAMED]
        differ = ", ".join(odd) or "their order"
        raise InputError(f"--init {parent.path}: is for {counts}; they differ in {differ}")
    return own


@torch.no_grad()
def inherit(
    model: nn.Module, recipe: Recipe, parent: ModelDirectory, rows: Rows, parent_rows: Rows
) -> Inherited:
    """Copy each weight whose name and shape fit and whose rows stand for the same.

    The position embeddings of larger or smaller patches are interpolated.
    """
    there = parent.weights()
    digest = sha256(parent.weights_file)  # at once: a running training may prune the file
    copied: dict[str, str] = {}
    for name, own in weights(model).items():
        origin = _name_in(there, name)
        given = name == THRESHOLDS and "thresholds" in recipe.reduce.model_fields_set
        if origin is None or given:
            continue
        weight = _stretch(there[origin], len(own)) if name in GRID else there[origin]
        same_rows = rows.get(_part(name)) == parent_rows.get(_part(origin))
        if same_rows and weight.shape == own.shape:
            own.copy_(weight)
            copied[name] = origin
    if not any(there[origin].dim() > 1 for origin in copied.values()):  # biases alone are no start
        raise InputError(f"--init {parent.path}: none of its matrices fits this recipe's model")
    new = [name for name in weights(model) if name not in copied]
    return Inherited(digest, list(copied), new, sorted(there.keys() - copied.values()))


def _name_in(there: Tensors, name: str) -> str | None:
    """Find a weight; a model of one side calls target what may be the source of a translation."""
    names = (name, name.replace("source_", "target_"))
    return next((candidate for candidate in names if candidate in there), None)


def _stretch(positions: Tensor, count: int) -> Tensor:
    """Interpolate positions (n, D) from edge to edge to (count, D)."""
    return functional.interpolate(positions.T[None], count, mode="linear", align_corners=False)[0].T


def _part(name: str) -> str:
    return name.partition(".")[0]


def _parts(names: Iterable[str]) -> str:
    counts = Counter(map(_part, names))
    return ", ".join(f"{part} ({count})" for part, count in counts.items())
