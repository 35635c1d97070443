"""A picture classifier in use: predicts classes, and shows where it attends."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seq2see.layers.trace import Trace
from seq2see.models.vit import VisionTransformer
from seq2see.pictures.augment import Format
from seq2see.pictures.files import read_picture
from seq2see.recipe.schema import Recipe
from seq2see.tasks.one_sided import Labelled
from seq2see.tasks.short_repr import parameters, short_repr
from seq2see.text.specials import SPECIALS

PICTURES_PER_BATCH = 64


@dataclass(frozen=True)
class PictureExplanation:
    """A picture, its predicted class, and all attention weights."""

    pixels: Tensor  # (C, H, W), bytes
    prediction: Labelled
    weights: list[Tensor]  # per layer, (heads, P, P): the class token, if any, then the patches
    grid: tuple[int, int]  # rows and columns of patches

    def __repr__(self) -> str:
        maps = sum(map(len, self.weights))
        return short_repr("PictureExplanation", self.prediction.label, f"{maps} attention maps")


class PictureModel:
    """Predicts the class of pictures (task `images`)."""

    def __init__(
        self,
        recipe: Recipe,
        format: Format,
        model: VisionTransformer,
        device: torch.device,
        directory: Path | None = None,
    ) -> None:
        self.recipe = recipe
        self.format = format
        self.device = device
        self.model = model.to(device).eval()
        self.directory = directory

    def __repr__(self) -> str:
        _, height, width = self.format.shape
        classes = f"{len(self.format.classes)} classes"
        layers = f"{self.recipe.model.encoder_layers} layers"
        facts = (classes, f"{height}×{width} pixels", layers, parameters(self.model))
        return short_repr("PictureModel", *facts, self.directory)

    def classify(self, paths: Sequence[str | Path]) -> list[Labelled]:
        """Predict the class of each picture file; probabilities are in falling order."""
        results: list[Labelled] = []
        for start in range(0, len(paths), PICTURES_PER_BATCH):
            batch = paths[start : start + PICTURES_PER_BATCH]
            results += self.classify_pixels(torch.stack([self.read(path) for path in batch]))
        return results

    def read(self, path: str | Path) -> Tensor:
        """Read a file in the model's size and colours: bytes (C, H, W)."""
        channels, height, width = self.format.shape
        return read_picture(Path(path), channels, (height, width))

    @torch.inference_mode()
    def classify_pixels(self, pixels: Tensor, trace: Trace | None = None) -> list[Labelled]:
        """Predict the classes of pictures given as bytes (B, C, H, W)."""
        self.model.eval()
        batch = self.format.batch(pixels).to(self.device)
        logits: Tensor = self.model(batch, trace)[:, len(SPECIALS) :]  # (B, classes)
        best, classes = logits.softmax(-1).sort(descending=True)
        results = []
        for probabilities, numbers in zip(best.tolist(), classes.tolist(), strict=True):
            names = [self.format.classes[number] for number in numbers]
            results.append(Labelled(names[0], dict(zip(names, probabilities, strict=True))))
        return results

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> Tensor:
        """Encode bytes (N, C, H, W) as the states (N, D) that the last layer classifies."""
        self.model.eval()
        states = []
        for part in torch.split(pixels, PICTURES_PER_BATCH):
            batch = self.format.batch(part).to(self.device)
            states.append(self.model.encode(batch.pixels).cpu())
        return torch.cat(states)

    @torch.inference_mode()
    def labels(self, features: Tensor) -> list[str]:
        """Predict the class of each picture from its features (N, D)."""
        logits = self.model.output(features.to(self.device))[:, len(SPECIALS) :]
        return [self.format.classes[number] for number in logits.argmax(-1).tolist()]

    def explain(self, path: str | Path) -> PictureExplanation:
        """Classify one picture file and return all attention weights."""
        return self.explain_pixels(self.read(path))

    def explain_pixels(self, pixels: Tensor) -> PictureExplanation:
        """Classify one picture given as bytes (C, H, W) and return all attention weights."""
        trace = Trace()
        (prediction,) = self.classify_pixels(pixels[None], trace)
        by_name = trace.on_tokens()
        layers = range(len(self.model.encoder))
        weights = [by_name[f"encoder.{i}.self"][0].cpu() for i in layers]
        return PictureExplanation(pixels, prediction, weights, self.model.grid)
