"""Noise processes: how a picture turns into noise, and what a model predicts to turn it back.

x_t = α(t) x_0 + σ(t) ε leads from the picture x_0 at time 0 to Gaussian noise ε at time 1.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from seq2see.errors import InputError

OFFSET = 0.008  # s of the cosine schedule
LATEST_NOISE = 0.999  # the last of 1,000 times at which some of the picture is left
ROOM = (-1, 1, 1, 1)  # a number per picture, to be multiplied by pictures (B, C, H, W)


class Levels(NamedTuple):
    """Shares of the picture and the noise in x_t, or the slopes of these shares."""

    alpha: Tensor
    sigma: Tensor


class Parts(NamedTuple):
    """The picture x_0 and the noise ε that x_t consists of."""

    picture: Tensor
    noise: Tensor


class Schedule(Protocol):
    """α and σ as functions of time, and the clock by which α σ' − σ α' = 1."""

    def __call__(self, time: Tensor, /) -> Levels: ...
    def clock(self, levels: Levels, /) -> Tensor: ...
    def slopes(self, levels: Levels, /) -> Levels: ...


class Cosine:
    """α = cos φ(t) / cos φ(0), φ(t) = (t + s) / (1 + s) · π/2 (Nichol and Dhariwal, 2021).

    α² + σ² = 1 preserves the variance; the clock is the angle between x_t and the picture.
    """

    def __call__(self, time: Tensor) -> Levels:
        quarter = math.pi / 2 / (1 + OFFSET)
        first = OFFSET * quarter
        alpha = torch.sin((1 - time) * quarter) / math.cos(first)
        # cos² φ(0) − cos² φ(t) as a product, which does not cancel near time 0
        product = torch.sin(time * quarter) * torch.sin(time * quarter + 2 * first)
        return Levels(alpha, product.sqrt() / math.cos(first))

    def clock(self, levels: Levels) -> Tensor:
        return torch.atan2(levels.sigma, levels.alpha)

    def slopes(self, levels: Levels) -> Levels:
        return Levels(-levels.sigma, levels.alpha)


class Straight:
    """α = 1 − t, σ = t: the straight path of flow matching (Lipman et al., 2023; Liu et al., 2023).

    The clock is time itself.
    """

    def __call__(self, time: Tensor) -> Levels:
        return Levels(1 - time, time)

    def clock(self, levels: Levels) -> Tensor:
        return levels.sigma

    def slopes(self, levels: Levels) -> Levels:
        return Levels(-torch.ones_like(levels.alpha), torch.ones_like(levels.sigma))


@dataclass(frozen=True)
class Process:
    """A schedule, and whether the model predicts the noise or the velocity of x_t.

    The velocity is the derivative of x_t by the clock, v = α' x_0 + σ' ε: for `Cosine` α ε − σ x_0
    (Salimans and Ho, 2022), for `Straight` ε − x_0.
    """

    schedule: Schedule
    predicts: Literal["noise", "velocity"]

    @property
    def latest(self) -> float:
        """The time from which sampling starts: noise alone does not tell the picture at time 1."""
        return LATEST_NOISE if self.predicts == "noise" else 1.0

    def levels(self, time: Tensor) -> Levels:
        """α and σ at times (B,), for pictures (B, C, H, W)."""
        return self.schedule(time.view(ROOM))

    def mix(self, parts: Parts, time: Tensor) -> Tensor:
        """x_t = α x_0 + σ ε."""
        alpha, sigma = self.levels(time)
        return alpha * parts.picture + sigma * parts.noise

    def velocity(self, parts: Parts, time: Tensor) -> Tensor:
        """v = α' x_0 + σ' ε."""
        alpha, sigma = self.schedule.slopes(self.levels(time))
        return alpha * parts.picture + sigma * parts.noise

    def target(self, parts: Parts, time: Tensor) -> Tensor:
        """The right prediction."""
        return parts.noise if self.predicts == "noise" else self.velocity(parts, time)

    def parts(self, x: Tensor, prediction: Tensor, time: Tensor) -> Parts:
        """Solve for x_0 and ε, given x_t and the prediction."""
        levels = self.levels(time)
        if self.predicts == "noise":
            return Parts((x - levels.sigma * prediction) / levels.alpha, prediction)
        slopes = self.schedule.slopes(levels)
        picture = slopes.sigma * x - levels.sigma * prediction
        return Parts(picture, levels.alpha * prediction - slopes.alpha * x)

    def parts_of(self, x: Tensor, picture: Tensor, time: Tensor) -> Parts:
        """Solve for ε, given x_t and a picture."""
        alpha, sigma = self.levels(time)
        return Parts(picture, (x - alpha * picture) / sigma)


PROCESSES = {
    "noise": Process(Cosine(), "noise"),
    "velocity": Process(Cosine(), "velocity"),
    "flow": Process(Straight(), "velocity"),
}


def noise_process(name: str) -> Process:
    """The process by the name of its prediction: noise, velocity or flow."""
    if name not in PROCESSES:
        raise InputError(f"noise process {name!r} is not one of {', '.join(PROCESSES)}")
    return PROCESSES[name]


def keyed(key: str) -> torch.Generator:
    """A generator whose numbers depend on the key alone."""
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
    return torch.Generator().manual_seed(seed)


def gaussian(generators: Sequence[torch.Generator], shape: Sequence[int]) -> Tensor:
    """Draw noise (B, …), that of each picture from its own generator."""
    return torch.stack([torch.randn(*shape, generator=each) for each in generators])
