"""Pictures with prompts, by line: drawn from the embedded scenes when asked for, or read before."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import captioned
from seq2see.pictures.captioned import CaptionedPictures
from seq2see.pictures.prompts import check_prompt
from seq2see.pictures.scenes import Drawings
from seq2see.recipe.schema import DataConfig, Recipe
from seq2see.text.history import Fingerprints, hashed

DIGESTED = 64  # drawings that are hashed: enough to tell a change of the grammar or the renderer
SCENES_AN_EPOCH = 50_000
VALIDATION_SCENES = 1_000
LONGEST_PROMPT = 20  # words, of scenes in any language
FOR_VOCABULARY = 20_000  # drawings that together use every word of the grammar, many times


class Prompted(NamedTuple):
    """Some pictures and their prompts."""

    pixels: Tensor  # (B, C, H, W), bytes
    prompts: list[str]


class PromptedPictures(Protocol):
    """A set of pictures with prompts."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256
    def __len__(self) -> int: ...
    def read(self, lines: Sequence[int]) -> Prompted: ...
    def vocabulary_prompts(self) -> Iterable[str]: ...  # that have every word of all prompts
    def epoch(self, number: int) -> "PromptedPictures": ...  # the set to train on, from 1
    def fingerprints(self) -> Fingerprints: ...  # (N, 1); none where no two sets can overlap
    def keep(self, lines: Sequence[int]) -> "PromptedPictures": ...


@dataclass(frozen=True)
class ScenePictures:
    """Pictures of a split of the embedded scenes; each epoch draws others."""

    drawings: Drawings

    @property
    def name(self) -> str:
        return self.drawings.split

    @cached_property
    def digest(self) -> str:
        content = hashlib.sha256(repr(self.drawings).encode())
        for line in range(min(DIGESTED, len(self))):
            drawing = self.drawings[line]
            content.update(drawing.prompt.text.encode())
            content.update(drawing.picture.tobytes())
        return content.hexdigest()

    def __len__(self) -> int:
        return len(self.drawings)

    def read(self, lines: Sequence[int]) -> Prompted:
        drawings = [self.drawings[line] for line in lines]
        pixels = torch.from_numpy(np.stack([drawing.picture for drawing in drawings]))
        prompts = [drawing.prompt.text for drawing in drawings]
        return Prompted(pixels.permute(0, 3, 1, 2), prompts)  # (B, C, H, W)

    def vocabulary_prompts(self) -> Iterable[str]:
        sample = replace(self.drawings, count=FOR_VOCABULARY, seed=1)
        return (drawing.prompt.text for drawing in sample)

    def epoch(self, number: int) -> "ScenePictures":
        return ScenePictures(replace(self.drawings, seed=number))

    def fingerprints(self) -> Fingerprints:
        """None are needed: the meaning of a prompt decides its split."""
        return hashed([], columns=1)

    def keep(self, lines: Sequence[int]) -> "ScenePictures":
        raise NotImplementedError("scenes have no fingerprints, so none are left out")


@dataclass(frozen=True)
class StoredPictures:
    """Pictures with captions in memory, the same in every epoch."""

    captioned: CaptionedPictures

    @property
    def name(self) -> str:
        return self.captioned.name

    @property
    def digest(self) -> str:
        return self.captioned.digest

    def __len__(self) -> int:
        return len(self.captioned)

    def read(self, lines: Sequence[int]) -> Prompted:
        pixels = self.captioned.pixels[torch.tensor(lines)]
        return Prompted(pixels, [self.captioned.captions[line] for line in lines])

    def vocabulary_prompts(self) -> Iterable[str]:
        return self.captioned.captions

    def epoch(self, number: int) -> "StoredPictures":
        return self

    def fingerprints(self) -> Fingerprints:
        return hashed((picture.numpy().tobytes() for picture in self.captioned.pixels), columns=1)

    def keep(self, lines: Sequence[int]) -> "StoredPictures":
        pixels, captions = self.read(lines)
        return StoredPictures(captioned.pictures(self.name, pixels, captions))


@dataclass(frozen=True)
class PromptedCorpus:
    """Training, validation and test sets of a run."""

    train: PromptedPictures
    val: PromptedPictures
    tests: dict[str, PromptedPictures]


def load(recipe: Recipe, where: Path | None) -> PromptedCorpus:
    """Read or prepare the pictures of a recipe."""
    config = recipe.data
    if config.corpus == "scenes":
        if where is not None:
            raise InputError(f"--data {where}: data.corpus 'scenes' is embedded and reads no files")
        return _scenes(config, recipe.diffusion.test_pictures)
    corpus = captioned.load(config, where)
    for part in (corpus.train, corpus.val, *corpus.tests.values()):
        for caption in part.captions:
            check_prompt(caption, config.max_length, f"caption in {part.name}")
    tests: dict[str, PromptedPictures] = {
        name: StoredPictures(test) for name, test in corpus.tests.items()
    }
    return PromptedCorpus(StoredPictures(corpus.train), StoredPictures(corpus.val), tests)


def _scenes(config: DataConfig, test_pictures: int) -> PromptedCorpus:
    def drawings(split: str, count: int, two_objects: bool = False) -> ScenePictures:
        size = config.size or 32
        groups = None if two_objects else config.groups
        return ScenePictures(
            Drawings(split, count, config.language, size, groups=groups, single=two_objects)
        )

    two_objects = config.groups is None
    tests: dict[str, PromptedPictures] = {
        name: drawings(name, test_pictures, two_objects) for name in ("test", "test_combinations")
    }
    if two_objects:
        tests["test_any"] = drawings("test", test_pictures)  # up to three groups and six objects
    train = drawings("train", config.limit or SCENES_AN_EPOCH)
    return PromptedCorpus(train, drawings("val", VALIDATION_SCENES), tests)
