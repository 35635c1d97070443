"""Data of task `diffusion`: prompted pictures, and the noise that training adds to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.pictures import prompted
from seq2see.pictures.prompted import PromptedCorpus, PromptedPictures
from seq2see.pictures.prompts import PaintingFormat, Shape
from seq2see.recipe.schema import Recipe
from seq2see.text.history import History, all_seen
from seq2see.training import checkpoint
from seq2see.training.denoising import NOISY, Draws, Times, draw_noise, times_of, uniform


@dataclass(frozen=True)
class PaintingBatch:
    """Pictures, prompts and noise; `lines` are their lines in the corpus."""

    pictures: Tensor  # (B, C, H, W), from −1 to 1
    prompts: Tensor  # (B, S), ids
    draws: Draws
    lines: list[int]

    @property
    def parts(self) -> tuple[Tensor, Tensor, Draws]:
        return self.pictures, self.prompts, self.draws

    @property
    def target_tokens(self) -> int:
        """A picture is one target: its loss is a mean over its pixels."""
        return len(self.pictures)

    def to(self, device: torch.device) -> "PaintingBatch":
        draws = Draws(*(numbers.to(device) for numbers in self.draws))
        return PaintingBatch(self.pictures.to(device), self.prompts.to(device), draws, self.lines)


class PaintingExamples:
    """Prompted pictures with noise drawn from the key and the line alone."""

    def __init__(
        self,
        pictures: PromptedPictures,
        format: PaintingFormat,
        key: str,
        times: Times = uniform,
    ) -> None:
        self.pictures = pictures
        self.format = format
        self.key = key
        self.times = times
        _, height, width = format.shape
        self.lengths: NDArray[np.int64] = np.tile([height * width, 1], (len(pictures), 1))

    def batch(self, lines: Sequence[int]) -> PaintingBatch:
        pixels, prompts = self.pictures.read(lines)
        draws = draw_noise(self.key, lines, self.format.shape)
        draws = draws._replace(time=self.times(draws.time))
        numbers = self.format.numbers(pixels)
        return PaintingBatch(numbers, self.format.ids(prompts), draws, list(lines))


class PaintingData:
    """Prompted pictures and, once prepared, the format in which the model takes them."""

    grows: ClassVar[bool] = False
    left_out = 0
    overlap: ClassVar[dict[str, int]] = {}

    def __init__(self, recipe: Recipe, where: Path | None, history: History) -> None:
        self.recipe = recipe
        self.seen: dict[str, int] = {}
        self.corpus, self.history = self._separated(prompted.load(recipe, where), history)
        self.format: PaintingFormat | None = None
        self.parts = {
            part.name: {"pictures": len(part), "sha256": part.digest}
            for part in (self.corpus.train, self.corpus.val)
        }
        self.tests = list(self.corpus.tests)
        self.notes: list[str] = []
        if pictures := recipe.diffusion.noisy_epochs * len(self.corpus.train):
            start = f"the first {pictures:,} pictures train times above {NOISY} alone"
            self.notes.append(f"{start} (diffusion.noisy_epochs); a shorter run cannot paint")

    def _separated(
        self, corpus: PromptedCorpus, history: History
    ) -> tuple[PromptedCorpus, History]:
        """Leave out held-out pictures that an ancestor was trained on."""
        val = self._unseen(corpus.val, history)
        tests = {name: self._unseen(test, history) for name, test in corpus.tests.items()}
        held_out = {f"test/{name}": test.fingerprints() for name, test in tests.items()}
        held_out["val"] = val.fingerprints()
        own = replace(history, train=corpus.train.fingerprints(), held_out=held_out)
        return replace(corpus, val=val, tests=tests), own

    def _unseen(self, pictures: PromptedPictures, history: History) -> PromptedPictures:
        known = history.saw(pictures.fingerprints())
        if not known.any():
            return pictures
        if known.all():
            raise all_seen(history, len(known), pictures.name)
        self.seen[pictures.name] = int(known.sum())
        return pictures.keep([line for line, seen in enumerate(known) if not seen])

    def prepare(self, folder: Path, parent: ModelDirectory | None) -> None:
        if parent is not None:
            self.format = self._inherited(PaintingFormat.load(parent.path), parent.path)
        elif checkpoint.saved_in(folder / "checkpoints"):
            self.format = PaintingFormat.load(folder)
        else:
            self.format = PaintingFormat.of(self.shape, self.corpus.train.vocabulary_prompts())
        self.format.save(folder)

    @property
    def shape(self) -> Shape:
        channels, height, width = self.corpus.val.read([0]).pixels.shape[1:]
        return channels, height, width

    def _inherited(self, format: PaintingFormat, path: Path) -> PaintingFormat:
        """The parent's words, for pictures of any size with its channels."""
        if epochs := self.recipe.diffusion.noisy_epochs:
            rule = "is for fresh weights, which have to learn layouts; set it to 0"
            raise InputError(f"--init {path}: diffusion.noisy_epochs = {epochs} {rule}")
        if format.shape[0] != self.shape[0]:
            channels = f"{format.shape[0]} channels, and the recipe's have {self.shape[0]}"
            raise InputError(f"--init {path}: is for pictures of {channels}")
        return replace(format, shape=self.shape)

    def train(self, epoch: int) -> PaintingExamples:
        key = f"noise/{self.recipe.train.seed}/{epoch}"
        times = times_of(self.recipe.diffusion, epoch)
        return PaintingExamples(self.corpus.train.epoch(epoch), self._prepared(), key, times)

    def validation(self) -> PaintingExamples:
        return PaintingExamples(self.corpus.val, self._prepared(), "noise/val")

    def summary(self) -> str:
        channels, height, width = self.shape
        return (
            f"{len(self.corpus.train):,} training pictures an epoch · "
            f"{len(self.corpus.val):,} for validation · {len(self._prepared().words):,} words · "
            f"{height} × {width} pixels × {channels}"
        )

    def _prepared(self) -> PaintingFormat:
        assert self.format is not None, "prepare() comes first"
        return self.format
