"""The loss of diffusion models: the right prediction, noise by line, and lost prompts."""

import pytest
import torch
from torch import Tensor

from seq2see.models.noise import PROCESSES, Parts, Process
from seq2see.recipe.diffusion import DiffusionConfig
from seq2see.text.specials import PAD
from seq2see.training.denoising import (
    MEAN_LOG_ODDS,
    STD_LOG_ODDS,
    Draws,
    denoising_loss,
    draw_noise,
    logit_normal,
    times_of,
)

SHAPE = (2, 3, 5)
processes = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
PICTURES = torch.randn(4, *SHAPE, generator=torch.Generator().manual_seed(1)).double()
PROMPTS = torch.tensor([[4, 5], [6, PAD], [7, 8], [9, PAD]])


def drawn(lines: list[int], key: str = "noise/1/1") -> Draws:
    time, noise, chance = draw_noise(key, lines, SHAPE)
    return Draws(time.double(), noise.double(), chance)


class Right:
    """Knows the pictures and their noise, and is wrong by a constant."""

    def __init__(self, process: Process, numbers: Draws, error: float) -> None:
        self.process, self.numbers, self.error = process, numbers, error
        self.prompts: list[list[int]] = []

    def read(self, prompts: Tensor) -> None:
        self.prompts = prompts.tolist()

    def __call__(self, x: Tensor, time: Tensor, memory: None) -> Tensor:
        parts = Parts(PICTURES, self.numbers.noise)
        torch.testing.assert_close(x, self.process.mix(parts, time))
        return self.process.target(parts, time) + self.error


@processes
@pytest.mark.parametrize("error", [0.0, 0.5])
def test_the_loss_is_the_squared_error_summed_over_pictures(process: Process, error: float) -> None:
    numbers = drawn([0, 1, 2, 3])
    loss = denoising_loss(Right(process, numbers, error), process, PICTURES, PROMPTS, numbers)
    assert loss.item() == pytest.approx(4 * error**2, abs=1e-12)


def test_an_example_gets_the_same_numbers_whatever_shares_its_batch() -> None:
    together, alone = drawn([3, 8, 5]), drawn([5])
    for many, one in zip(together, alone, strict=True):
        assert torch.equal(many[2], one[0])
        assert not torch.equal(many[1], one[0])
    later = drawn([5], key="noise/1/2")
    assert all(not torch.equal(one, two) for one, two in zip(alone, later, strict=True))


def test_noisy_epochs_come_first() -> None:
    config = DiffusionConfig(times="logit_normal", noisy_epochs=2)
    times = [times_of(config, epoch)(torch.tensor([0.0, 0.25, 1.0])) for epoch in (1, 2, 3)]
    torch.testing.assert_close(times[0], torch.tensor([0.97, 0.9775, 1.0]))
    assert torch.equal(times[1], times[0])
    assert torch.equal(times[2], logit_normal(torch.tensor([0.0, 0.25, 1.0])))
    assert times_of(DiffusionConfig(), 1)(torch.tensor([0.3])) == torch.tensor([0.3])


def test_times_are_uniform_and_noise_is_normal() -> None:
    time, noise, chance = draw_noise("noise/1/1", range(4000), (1, 1, 2))
    for share in (0.1, 0.5, 0.9):
        assert (time < share).float().mean().item() == pytest.approx(share, abs=0.03)
        assert (chance < share).float().mean().item() == pytest.approx(share, abs=0.03)
    assert noise.mean().item() == pytest.approx(0, abs=0.04)
    assert noise.std().item() == pytest.approx(1, abs=0.04)
    assert abs(torch.corrcoef(torch.stack([time, chance, *noise.flatten(1).T]))[0, 1:]).max() < 0.06


def test_low_chances_lose_their_prompt() -> None:
    process, numbers = PROCESSES["noise"], drawn([0, 1, 2, 3])
    numbers = numbers._replace(chance=torch.tensor([0.3, 0.05, 0.1, 0.0]))
    model = Right(process, numbers, 0.0)
    denoising_loss(model, process, PICTURES, PROMPTS, numbers, without_prompt=0.1)
    assert model.prompts == [[4, 5], [PAD, PAD], [7, 8], [PAD, PAD]]


def test_the_log_odds_of_times_are_normal() -> None:
    uniform = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    times = logit_normal(uniform)
    odds = torch.logit(times)
    assert odds.mean().item() == pytest.approx(MEAN_LOG_ODDS, abs=0.01)
    assert odds.std().item() == pytest.approx(STD_LOG_ODDS, rel=0.01)
    assert (times.diff() > 0).all() and times[0] > 0 and times[-1] < 1
