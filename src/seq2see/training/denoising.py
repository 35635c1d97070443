"""The loss of a diffusion model: noise is added to each picture, and the model has to tell it."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2see.models.noise import Parts, Process, gaussian, keyed
from seq2see.text.specials import PAD

# Above 0, since the latest times decide the layout. Other values were not tried.
MEAN_LOG_ODDS = 0.4
STD_LOG_ODDS = 1.2


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
    uniform = torch.stack([torch.rand(2, generator=generator) for generator in generators])
    return Draws(uniform[:, 0], gaussian(generators, shape), uniform[:, 1])


def logit_normal(uniform: Tensor) -> Tensor:
    """Map numbers (B,) uniform from 0 to 1 to times whose log-odds are normal (Esser et al., 2024).

    Training then sees few times near 0, where a large error in the velocity is a small one in the
    picture, and more of those in the middle, which decide shapes.
    """
    return torch.sigmoid(MEAN_LOG_ODDS + STD_LOG_ODDS * torch.special.ndtri(uniform))


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
