"""A model of pictures in use: it tells what a picture shows, and where it looked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.layers.reduction.plans import plan_of
from seq2see.layers.trace import Trace
from seq2see.models.vit import VisionTransformer
from seq2see.pictures.augment import Format, Shown
from seq2see.pictures.datasets import PictureCorpus
from seq2see.pictures.files import read_picture
from seq2see.recipe.schema import Recipe
from seq2see.tasks.language import Labelled
from seq2see.tasks.translate import fill, merging, pick_device, recipe_of
from seq2see.text.vocab import SPECIALS

PICTURES_AT_ONCE = 64


@dataclass(frozen=True)
class Sight:
    """A picture as the model saw it, what it took it for, and every attention weight behind that."""

    pixels: Tensor  # (C, H, W), bytes
    found: Labelled
    weights: list[
        Tensor
    ]  # of each layer, (heads, P, P): the class token, if there is one, then the patches
    grid: tuple[int, int]  # patches in a column, patches in a row


class PictureModel:
    """Tells the class of pictures (task `images`)."""

    def __init__(
        self, recipe: Recipe, format: Format, model: VisionTransformer, device: torch.device
    ) -> None:
        self.recipe, self.format, self.device = recipe, format, device
        self.model = model.to(device).eval()

    def classify(self, paths: Sequence[str | Path]) -> list[Labelled]:
        """The class of each picture file, and the probability of each class, likeliest first."""
        found: list[Labelled] = []
        for start in range(0, len(paths), PICTURES_AT_ONCE):
            pixels = torch.stack(
                [self.read(path) for path in paths[start : start + PICTURES_AT_ONCE]]
            )
            found += self.look(pixels)
        return found

    def read(self, path: str | Path) -> Tensor:
        """A file in the model's size and colours: bytes (C, H, W)."""
        channels, height, width = self.format.shape
        return read_picture(Path(path), channels, (height, width))

    @torch.inference_mode()
    def look(self, pixels: Tensor, trace: Trace | None = None) -> list[Labelled]:
        """The classes of pictures that are bytes (B, C, H, W) already."""
        self.model.eval()
        batch = self.format.batch(pixels).to(self.device)
        logits: Tensor = self.model(batch, trace)[:, 0, len(SPECIALS) :]  # (B, classes)
        best, classes = logits.softmax(-1).sort(descending=True)
        found = []
        for row, numbers in zip(best.tolist(), classes.tolist(), strict=True):
            names = [self.format.classes[number] for number in numbers]
            found.append(Labelled(names[0], dict(zip(names, row, strict=True))))
        return found

    def shown(self, corpus: PictureCorpus, test: str) -> Shown:
        """A test set as this model sees it."""
        if (tuple(corpus.train.pixels.shape[1:]), corpus.classes) != (
            self.format.shape,
            self.format.classes,
        ):
            raise InputError(
                "these pictures have another size or other classes than those the model was trained on"
            )
        return Shown(corpus.tests[test], self.format, math.prod(self.model.grid))

    def explain(self, path: str | Path) -> Sight:
        """Classify one picture file and keep every attention weight."""
        pixels, trace = self.read(path), Trace()
        (found,) = self.look(pixels[None], trace)
        by_name = trace.on_tokens()
        weights = [by_name[f"encoder.{i}.self"][0].cpu() for i in range(len(self.model.encoder))]
        return Sight(pixels, found, weights, self.model.grid)


def built(recipe: Recipe, format: Format) -> VisionTransformer:
    """The model that a recipe describes, for pictures of this format, with fresh weights."""
    _, height, width = format.shape
    if height % recipe.model.patch or width % recipe.model.patch:
        raise InputError(
            f"model.patch ({recipe.model.patch}) must divide the {height} × {width} pixels of a picture"
        )
    model = VisionTransformer(recipe.model, format.shape, len(format.labels))
    model.plan = plan_of(recipe.reduce, recipe.model.encoder_layers)
    return model


def load_pictures(
    directory: str | Path, device: str = "auto", merge: int | None = None
) -> PictureModel:
    """Open the directory of a model that classifies pictures; it may merge so many tokens in each layer."""
    recipe, format = recipe_of(directory, "images"), Format.load(Path(directory))
    model = built(recipe, format)
    fill(model, Path(directory))
    merged = merging(model, merge)
    assert isinstance(merged, VisionTransformer)
    return PictureModel(recipe, format, merged, pick_device(device))
