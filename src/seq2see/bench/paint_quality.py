"""Quality of painted pictures: prompts that are followed, and the distance from real pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seq2see.decoding.denoising import Denoising
from seq2see.errors import InputError
from seq2see.pictures.prompted import ScenePictures, StoredPictures
from seq2see.scoring.painting import (
    Classifier,
    check_pictures,
    frechet_distance,
    prompt_accuracy,
)
from seq2see.tasks.painter import Painter, Pictures

SIDE = 8  # pixels, to which scenes are averaged down for the Fréchet distance
FEWEST = 2  # pictures that have a covariance


@dataclass(frozen=True)
class Quality:
    """Verdicts on pictures painted for the prompts of a test set."""

    right: list[bool]  # whether each picture shows what its prompt says
    frechet_distance: float
    attributes: dict[str, Any] | None = None  # of scenes: accuracy by attribute

    @property
    def accuracy(self) -> float:
        return sum(self.right) / len(self.right)


@dataclass(frozen=True)
class QualityTest:
    """Prompts of a test set, and how pictures painted for them are judged."""

    name: str
    prompts: list[str]
    seeds: list[int]
    judge: str  # that decides what is right
    features: str  # whose distribution the Fréchet distance compares with that of real pictures
    measure: Callable[[Pictures], Quality]

    def run(self, painter: Painter, sampling: Denoising) -> Quality:
        return self.measure(painter.paint(self.prompts, self.seeds, sampling))


def scene_test(scenes: ScenePictures, lines: list[int]) -> QualityTest:
    """Judge pictures of scenes by a program; compare them with the drawings of the same lines."""
    from seq2see.pictures.scenes.judge import judge  # here: it needs SciPy, other pictures do not

    _check_count(lines)
    prompts = [scenes.drawings[line].prompt for line in lines]
    real, texts = scenes.read(lines)

    def measure(painted: Pictures) -> Quality:
        verdicts = [judge(*pair) for pair in zip(painted, prompts, strict=True)]
        pixels = torch.from_numpy(painted).permute(0, 3, 1, 2)
        return Quality(
            [verdict.all for verdict in verdicts],
            frechet_distance(averaged(real), averaged(pixels)),
            prompt_accuracy(verdicts)["attributes"],
        )

    features = f"pictures averaged down to {SIDE} × {SIDE} × {real.shape[1]}, colours from 0 to 1"
    return QualityTest(scenes.name, texts, lines, "the judge of scenes", features, measure)


def class_test(
    pictures: StoredPictures, lines: list[int], classifier: Classifier, name: str
) -> QualityTest:
    """Classify pictures; compare their features with those of the whole test set."""
    check_pictures(pictures.captioned, classifier.format)
    _check_count(lines)
    prompts = pictures.read(lines).prompts
    real = classifier.features(pictures.captioned.pixels)  # (M, D)

    def measure(painted: Pictures) -> Quality:
        features = classifier.features(torch.from_numpy(painted).permute(0, 3, 1, 2))
        labels = zip(classifier.labels(features), prompts, strict=True)
        right = [label == prompt for label, prompt in labels]
        return Quality(right, frechet_distance(real, features))

    judge = f"the classifier {name}"
    return QualityTest(pictures.name, prompts, lines, judge, "its features", measure)


def _check_count(lines: Sequence[int]) -> None:
    if len(lines) < FEWEST:
        rule = f"a Fréchet distance needs at least {FEWEST}; 0 measures no quality"
        raise InputError(f"--test-pictures {len(lines)}: {rule}")


def averaged(pixels: Tensor) -> Tensor:
    """Average bytes (N, C, H, W) down to a few pixels of each: (N, C · 8 · 8)."""
    return functional.adaptive_avg_pool2d(pixels.float() / 255, SIDE).flatten(1)


@dataclass(frozen=True)
class Change:
    """Prompts on which two settings differ."""

    became_wrong: int
    became_right: int
    p_value: float  # of McNemar's exact test: small if the difference is hardly due to chance


def change(before: Sequence[bool], after: Sequence[bool]) -> Change:
    """Compare verdicts on the same prompts."""
    pairs = list(zip(before, after, strict=True))
    wrong = pairs.count((True, False))
    right = pairs.count((False, True))
    return Change(wrong, right, mcnemar(wrong, right))


def mcnemar(first: int, second: int) -> float:
    """Compute the p-value of McNemar's exact test: 2 Σ C(n, k) / 2ⁿ over k ≤ the smaller count.

    If the settings are equally good, each of the n prompts on which they differ favours either of
    them like the toss of a coin.
    """
    n = first + second
    tail = sum(comb(n, k) for k in range(min(first, second) + 1))
    return min(1.0, 2 * tail / (1 << n))
