"""Task `images`: a picture → its class."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.models.build import reduced
from seq2see.models.directory import ModelDirectory
from seq2see.models.init import Rows, format_for
from seq2see.models.vit import VisionTransformer
from seq2see.pictures import datasets
from seq2see.pictures.augment import Format, PictureBatch, PictureExamples
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus
from seq2see.recipe.schema import AugmentConfig, Recipe
from seq2see.scoring.confusion import confusion_of
from seq2see.tasks.keys import FOR_PAINTING, FOR_TEXT, PICTURES, refuse_keys
from seq2see.tasks.one_sided import SAMPLES, report
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.predict import logit_loss, predict, validated
from seq2see.tasks.protocol import Report
from seq2see.tasks.text import device_of
from seq2see.tasks.translate import merged
from seq2see.text.history import Fingerprints, History, all_seen, hashed
from seq2see.text.progress import Progress, silent
from seq2see.training import checkpoint
from seq2see.training.report import Validation


class PictureData:
    """Labelled pictures and, once prepared, the format in which the model takes them."""

    grows: ClassVar[bool] = False
    left_out = 0
    overlap: ClassVar[dict[str, int]] = {}

    def __init__(self, recipe: Recipe, where: Path | None, history: History) -> None:
        self.recipe = recipe
        self.seen: dict[str, int] = {}
        self.corpus, self.history = self._separated(datasets.load(recipe.data, where), history)
        self.format = Format.of(self.corpus)
        self.parts = {
            part.name: {"pictures": len(part), "sha256": part.digest}
            for part in (self.corpus.train, self.corpus.val)
        }
        self.tests = list(self.corpus.tests)
        self.notes: list[str] = []

    def _separated(self, corpus: PictureCorpus, history: History) -> tuple[PictureCorpus, History]:
        """Leave out held-out pictures that an ancestor was trained on."""
        val = self._unseen(corpus.val, history)
        tests = {name: self._unseen(test, history) for name, test in corpus.tests.items()}
        held_out = {f"test/{name}": fingerprints(test) for name, test in tests.items()}
        held_out["val"] = fingerprints(val)
        own = replace(history, train=fingerprints(corpus.train), held_out=held_out)
        return replace(corpus, val=val, tests=tests), own

    def _unseen(self, pictures: LabelledPictures, history: History) -> LabelledPictures:
        known = torch.from_numpy(history.saw(fingerprints(pictures)))
        if not known.any():
            return pictures
        if known.all():
            raise all_seen(history, len(known), pictures.name)
        self.seen[pictures.name] = int(known.sum())
        return datasets.pictures(pictures.name, pictures.pixels[~known], pictures.labels[~known])

    def prepare(self, folder: Path, parent: ModelDirectory | None) -> None:
        if parent is not None:
            self.format = format_for(self.format, parent)
        elif checkpoint.saved_in(folder / "checkpoints"):
            self.format = Format.load(folder)  # the run's own, which may be its parent's
        self.format.save(folder)

    @property
    def patches(self) -> int:
        _, height, width = self.format.shape
        return height * width // self.recipe.model.patch**2

    def train(self, epoch: int) -> PictureExamples:
        augment = None if self.recipe.augment == AugmentConfig() else self.recipe.augment
        key = f"augment/{self.recipe.train.seed}/{epoch}"
        return PictureExamples(self.corpus.train, self.format, self.patches, augment, key)

    def validation(self) -> PictureExamples:
        return PictureExamples(self.corpus.val, self.format, self.patches)

    def summary(self) -> str:
        channels, height, width = self.format.shape
        return (
            f"{len(self.corpus.train):,} training pictures · "
            f"{len(self.corpus.val):,} for validation · {len(self.format.classes)} classes · "
            f"{height} × {width} pixels × {channels} → {self.patches} patches"
        )


def fingerprints(pictures: LabelledPictures) -> Fingerprints:
    """Hash the pixels of each picture: (N, 1)."""
    return hashed((picture.numpy().tobytes() for picture in pictures.pixels), columns=1)


class Images:
    """Predicts the class of a picture."""

    medium: ClassVar[str] = "pictures"
    command: ClassVar[str] = "seq2see classify"
    unit: ClassVar[str] = "pictures"

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def check(self) -> None:
        recipe = self.recipe
        refuse_keys(recipe, FOR_TEXT, "text")
        refuse_keys(recipe, FOR_PAINTING, "task 'diffusion'")
        if recipe.model.overlap > 2 * recipe.model.patch:
            rule = f"must be at most twice model.patch ({recipe.model.patch})"
            raise ValueError(f"model.overlap ({recipe.model.overlap}) {rule}")
        if recipe.data.corpus is None:
            if isinstance(recipe.data.train, list):
                raise ValueError("data.train lists files; pictures are in one folder")
            return
        corpus = f"data.corpus {recipe.data.corpus!r}"
        if recipe.data.corpus not in PICTURES:
            raise ValueError(f"{corpus}: task {recipe.task!r} is for pictures by class")
        if {"size", "colour"} & recipe.data.model_fields_set:
            raise ValueError(f"data.size and data.colour are for picture files, not for {corpus}")

    def data(
        self,
        where: Path | None,
        history: History,
        progress: Progress = silent,
        folder: Path | None = None,
    ) -> PictureData:
        progress("reading the pictures", None)
        return PictureData(self.recipe, where, history)

    def build(self, data: PictureData) -> VisionTransformer:
        return self.network(data.format)

    def network(self, format: Format) -> VisionTransformer:
        patch = self.recipe.model.patch
        _, height, width = format.shape
        if height % patch or width % patch:
            pixels = f"the {height} × {width} pixels of a picture"
            raise InputError(f"model.patch ({patch}) must divide {pixels}")
        model = VisionTransformer(self.recipe.model, format.shape, len(format.labels))
        return reduced(model, self.recipe)

    def loss(self, model: nn.Module, batch: PictureBatch) -> Tensor:
        return logit_loss(model, batch, self.recipe.train)

    def validate(self, model: nn.Module, data: PictureData, share: float = 1.0) -> Validation:
        """Loss and accuracy on the validation set, and the first mistakes."""
        examples = data.validation()
        kept = validated(len(examples.labels), share)
        predictions = predict(model, examples, self.recipe.train, device_of(model), kept)
        right = examples.labels[kept].tolist()
        samples: list[tuple[str, str, str]] = []
        if math.isfinite(predictions.loss):
            names = data.format.labels.words(range(len(data.format.labels)))
            for line, label, (guess,) in zip(kept, right, predictions.guesses, strict=True):
                if label != guess and len(samples) < SAMPLES:
                    samples.append((f"val picture {line + 1}", names[label], names[guess]))
        figures = {"perplexity": predictions.perplexity, "accuracy": predictions.accuracy}
        summary = f"perplexity {predictions.perplexity:.2f} · {predictions.accuracy:.2%} right"
        used = f"{len(kept):,} of {len(examples.labels):,} pictures"
        used_share = len(kept) / len(examples.labels)
        tested = sum(len(test) for test in data.corpus.tests.values())
        scoring = predictions.seconds * tested / len(kept)
        return Validation(
            predictions.mean_loss, figures, summary, samples, used, used_share, scoring
        )

    def score(self, opened: PictureModel, data: PictureData, test: str) -> Report:
        pictures = data.corpus.tests[test]
        examples = self.test_examples(opened, data, test)
        model = opened.model.eval()
        predictions = predict(model, examples, self.recipe.train, opened.device)
        names = opened.format.labels.words(range(len(opened.format.labels)))
        right = [names[label] for label in examples.labels.tolist()]
        guessed = [names[guess] for (guess,) in predictions.guesses]
        confusion = confusion_of(right, guessed, names)
        return report(predictions, "pictures", pictures.digest, confusion=confusion)

    def test_examples(self, opened: PictureModel, data: PictureData, test: str) -> PictureExamples:
        """A test set in the format of a model."""
        shape = tuple(data.corpus.train.pixels.shape[1:])
        if (shape, data.corpus.classes) != (opened.format.shape, opened.format.classes):
            raise InputError("the pictures differ in size or classes from the model's training set")
        patches = math.prod(opened.model.grid)
        return PictureExamples(data.corpus.tests[test], opened.format, patches)

    def open(
        self, directory: ModelDirectory, device: torch.device, merge: int | None = None
    ) -> PictureModel:
        model = self.network(directory.format)
        directory.fill(model)
        model = merged(model, merge)
        return PictureModel(self.recipe, directory.format, model, device, directory.path)

    def inside(self) -> str:
        return "picture"

    def rows(self, vocabulary: Any) -> Rows:
        return {}
