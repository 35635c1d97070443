"""The loss of a diffusion model: noise is added to each picture, and the model has to tell it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2see.models.noise import Parts, Process, gaussian, keyed
from seq2see.recipe.diffusion import DiffusionConfig
from seq2see.text.specials import PAD

# Half of the times are above 0.77: layout, colours and shapes are decided at high noise.
MEAN_LOG_ODDS = 1.2
STD_LOG_ODDS = 1.6
NOISY = 0.97  # the earliest time of noisy epochs; no object of 32 × 32 pixels is visible there

Times = Callable[[Tensor], Tensor]  # uniform numbers from 0 to 1 → times


class Draws(NamedTuple):
    """The random numbers of some examples."""

    time: Tensor  # (B,), from 0 to 1
    noise: Tensor  # (B, C, H, W)
    chance: Tensor  # (B,), from 0 to 1: low ones lose their prompt


def draw_noise(key: str, lines: Iterable[int], shape: Sequence[int]) -> Draws:
    """Draw numbers for lines of a corpus from the key, such as seed and epoch, and the line alone.

    An example gets the same numbers whatever shares its batch.
    """
    generators = [keyed(f"{key}/{line}") for line in lines]
    numbers = torch.stack([torch.rand(2, generator=generator) for generator in generators])
    return Draws(numbers[:, 0], gaussian(generators, shape), numbers[:, 1])


def times_of(config: DiffusionConfig, epoch: int) -> Times:
    """Return the map from uniform numbers to the times of an epoch, counted from 1."""
    if epoch <= config.noisy_epochs:
        return noisy
    return {"uniform": uniform, "logit_normal": logit_normal}[config.times]


def uniform(numbers: Tensor) -> Tensor:
    """Return numbers (B,) from 0 to 1 as the times."""
    return numbers


def noisy(numbers: Tensor) -> Tensor:
    """Map uniform numbers (B,) to times at which the layout has to come from the prompt."""
    return NOISY + (1 - NOISY) * numbers


def logit_normal(numbers: Tensor) -> Tensor:
    """Map uniform numbers (B,) to times whose log-odds are normal (Esser et al., 2024).

    Training then sees few times near 0, where a large error in the velocity is a small one in the
    picture.
    """
    return torch.sigmoid(MEAN_LOG_ODDS + STD_LOG_ODDS * torch.special.ndtri(numbers))


def denoising_loss(
    model: Any,
    process: Process,
    pictures: Tensor,
    prompts: Tensor,
    drawn: Draws,
    without_prompt: float = 0.1,
) -> Tensor:
    """Squared error of the prediction, averaged over each picture and summed over the batch.

    pictures (B, C, H, W), prompt ids (B, S). A share of the examples loses its prompt, so that the
    model also learns to do without: for classifier-free guidance (Ho and Salimans, 2022).
    """
    lost = drawn.chance < without_prompt
    memory = model.read(prompts.masked_fill(lost[:, None], PAD))
    parts = Parts(pictures, drawn.noise)
    prediction: Tensor = model(process.mix(parts, drawn.time), drawn.time, memory)
    error = prediction - process.target(parts, drawn.time)
    return error.square().flatten(1).mean(1).sum()
