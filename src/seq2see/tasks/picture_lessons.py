"""What the task `images` gives a run: pictures by class, changed a little each epoch."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from seq2see.batches import IdPair
from seq2see.models.init import take_over
from seq2see.pictures import datasets
from seq2see.pictures.augment import Format, Shown, collate_shown
from seq2see.pictures.datasets import LabelledPictures
from seq2see.recipe.schema import AugmentConfig, Recipe
from seq2see.tasks import text as tasks
from seq2see.tasks.images import PictureModel, built
from seq2see.tasks.lessons import Examined, Lesson, Trained, begun_with
from seq2see.training import checkpoint
from seq2see.training.loop import Validation


class PictureLessons:
    """Pictures, their format, and how they are shown."""

    def __init__(self, recipe: Recipe, data: Path | None) -> None:
        self.recipe, self.corpus = recipe, datasets.load(recipe.data, data)
        self.format = Format.of(self.corpus)
        learned = (self.corpus.train, self.corpus.val)
        self.parts = {part.name: {"pictures": len(part), "sha256": part.digest} for part in learned}
        self.tests = list(self.corpus.tests)

    def prepare(self, folder: Path, origin: Path | None, device: torch.device) -> Lesson:
        other = begun_with(origin, folder, self.recipe)
        if other is not None:
            self.format = other.format_for(self.format)
        elif checkpoint.saved_in(
            folder / "checkpoints"
        ):  # its own, which may be that of the model it began with
            self.format = Format.load(folder)
        torch.manual_seed(self.recipe.train.seed)
        model = built(self.recipe, self.format).to(device)
        taken = None if other is None else (take_over(model, self.recipe, other), other)
        self.format.save(folder)
        (channels, height, width), (rows, columns) = self.format.shape, model.grid
        about = (
            f"{len(self.corpus.train):,} training pictures · {len(self.corpus.val):,} for validation · "
            f"{len(self.format.classes)} classes · {height} × {width} pixels × {channels} → {rows * columns} patches"
        )

        def validate(model: nn.Module) -> Validation:
            return self._validate(model, device)

        return Lesson(model, self._examples, collate_shown, validate, about, taken, unit="pictures")

    def _examples(self, epoch: int) -> Sequence[IdPair]:
        augment, key = self.recipe.augment, f"augment/{self.recipe.train.seed}/{epoch}"
        return self._shown(self.corpus.train, None if augment == AugmentConfig() else augment, key)

    def _shown(
        self, pictures: LabelledPictures, augment: AugmentConfig | None = None, key: str = ""
    ) -> Shown:
        _, height, width = self.format.shape
        return Shown(
            pictures, self.format, height * width // self.recipe.model.patch**2, augment, key
        )

    def _validate(self, model: nn.Module, device: torch.device) -> Validation:
        """Loss and accuracy on all of val, and the first mistakes."""
        shown = self._shown(self.corpus.val)
        found = tasks.look(self.recipe, model, shown, device)
        mistakes = [line for line, guess in enumerate(found.guesses) if guess != shown[line][1]]
        samples = list[tuple[str, str, str]]()
        if math.isfinite(found.loss):
            named = self.format.labels.words
            for line in mistakes[: tasks.SHOWN]:
                samples.append(
                    (
                        f"val picture {line + 1}",
                        named(shown[line][1])[0],
                        named(found.guesses[line])[0],
                    )
                )
        accuracy = found.right / found.tokens
        return Validation(found.loss / found.tokens, found.perplexity, None, samples, accuracy)

    def examine(self, model: Trained, test: str) -> Examined:
        assert isinstance(model, PictureModel)
        pictures, shown = self.corpus.tests[test], model.shown(self.corpus, test)
        found = tasks.look(model.recipe, model.model.eval(), shown, model.device)
        confusion = tasks.confusion_of(model.format.labels, shown, found.guesses)
        looked = tasks.Examination.of("images", found, len(pictures), 0, confusion)
        return Examined(looked.values() | {"corpus_sha256": pictures.digest}, looked.lines())
