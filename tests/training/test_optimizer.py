"""Muon: orthogonal updates of Adam's size for hidden matrices, and Adam for all others."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from seq2see.models.diffusion import PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.transformer import Transformer
from seq2see.models.unet import UNet
from seq2see.recipe.schema import ModelConfig
from seq2see.training.optimizer import (
    ADAMS_STEP,
    COEFFICIENTS,
    ITERATIONS,
    MOMENTUM,
    Muon,
    adam,
    is_hidden,
    optimizer,
    orthogonal,
)


def model(tie: str = "all") -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(width=8, heads=2, encoder_layers=1, decoder_layers=2, feed_forward=20)
    return Transformer(config, 13, 13, tie)


def fill_gradients(network: nn.Module, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for weight in network.parameters():
        weight.grad = torch.randn(weight.shape, generator=draw)


def step(made: torch.optim.Optimizer, rate: float = 0.1) -> None:
    for group in made.param_groups:
        group["lr"] = rate
    made.step()


@pytest.mark.parametrize("shape", [(7, 7), (5, 12), (2, 30)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_the_direction_is_orthogonal(shape: tuple[int, int], scale: float) -> None:
    draw = torch.Generator().manual_seed(2)
    matrix = torch.randn(shape, generator=draw) * scale
    direction = orthogonal(matrix)
    assert direction.dtype == torch.float32
    values = torch.linalg.svdvals(direction)
    assert float(values.min()) > 0.6 and float(values.max()) < 1.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    # The same rotation as the exact one: along each singular direction it moves by about one.
    along = (u.mT @ direction @ v.mT).diagonal()
    torch.testing.assert_close(along, torch.ones_like(along), rtol=0, atol=0.4)


def test_a_gradient_of_zero_moves_nothing() -> None:
    assert not orthogonal(torch.zeros(3, 5)).any()


def newton_schulz(matrix: Tensor) -> Tensor:
    """The steps as they are published, each on the whole matrix."""
    a, b, c = COEFFICIENTS
    x = matrix / (matrix.norm() + 1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


@pytest.mark.parametrize("smallest", [1.0, 1e-3, 1e-7])
def test_steps_on_the_square_alone_are_those_on_the_matrix(smallest: float) -> None:
    draw = torch.Generator().manual_seed(4)
    u, _, v = torch.linalg.svd(torch.randn(24, 40, generator=draw), full_matrices=False)
    matrix = u * torch.logspace(0, math.log10(smallest), 24) @ v
    torch.testing.assert_close(orthogonal(matrix), newton_schulz(matrix), rtol=0, atol=1e-3)


def reference_step(weight: Tensor, gradient: Tensor, mean: Tensor, rate: float) -> Tensor:
    """One matrix alone, as the formulas stand."""
    mean.copy_(MOMENTUM * mean + (1 - MOMENTUM) * gradient)
    ahead = (1 - MOMENTUM) * gradient + MOMENTUM * mean
    wide = ahead.shape[0] <= ahead.shape[1]
    direction = newton_schulz(ahead if wide else ahead.T)
    return weight - rate * ADAMS_STEP * max(weight.shape) ** 0.5 * (
        direction if wide else direction.T
    )


def test_steps_are_those_of_the_formulas_one_by_one() -> None:
    ours = model()
    made = Muon(ours)
    means = {name: torch.zeros_like(weight) for name, weight in ours.named_parameters()}
    for update in range(3):
        fill_gradients(ours, update)
        expected = {
            name: reference_step(weight.detach().clone(), weight.grad, means[name], 0.1)
            for name, weight in ours.named_parameters()
            if is_hidden(name, weight) and weight.grad is not None
        }
        step(made)
        for name, weight in expected.items():
            torch.testing.assert_close(
                ours.get_parameter(name).detach(), weight, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_all_but_hidden_matrices_stay_with_adam(tie: str) -> None:
    ours, theirs = model(tie), model(tie)
    muon, plain = Muon(ours), adam(theirs.parameters())
    hidden = {name for name, weight in ours.named_parameters() if is_hidden(name, weight)}
    assert (
        len(hidden) == 6 + 2 * 10
    )  # four projections and two of the feed-forward; twice the projections to decode
    assert not any(
        "embedding" in name or "norm" in name or name == "output.weight" for name in hidden
    )
    for update in range(3):
        for network, made in ((ours, muon), (theirs, plain)):
            fill_gradients(network, update)
            step(made)
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other) == (name not in hidden), name


def test_an_update_is_as_large_as_adams() -> None:
    ours = model()
    before = copy.deepcopy(ours)
    fill_gradients(ours, 5)
    step(Muon(ours), rate=0.01)
    for (name, weight), old in zip(ours.named_parameters(), before.parameters(), strict=True):
        if is_hidden(name, weight):
            size = float((weight - old).detach().square().mean().sqrt())
            assert 0.6 * 0.01 * ADAMS_STEP < size < 1.3 * 0.01 * ADAMS_STEP, name


def test_the_recipe_chooses() -> None:
    assert isinstance(optimizer(model(), "muon"), Muon)
    assert isinstance(optimizer(model(), "adam"), torch.optim.Adam)


class Convolutions(nn.Module):
    """First and last layer, and between them a wide and a tall kernel and one of one pixel."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Conv2d(2, 5, 3)
        self.wide = nn.Conv2d(5, 7, 3)
        self.tall = nn.Conv2d(7, 11, 1)
        self.output = nn.Conv2d(11, 2, 3)


def test_a_convolution_is_the_matrix_of_its_window() -> None:
    ours = Convolutions()
    before = copy.deepcopy(ours)
    fill_gradients(ours, 6)
    step(Muon(ours))
    for name in ("wide", "tall"):
        weight = before.get_submodule(name).weight.detach().flatten(1)
        gradient = ours.get_submodule(name).weight.grad.flatten(1)
        expected = reference_step(weight, gradient, torch.zeros_like(weight), 0.1)
        moved = ours.get_submodule(name).weight.detach().flatten(1)
        torch.testing.assert_close(moved, expected, rtol=1e-4, atol=1e-5)


def test_the_layers_at_both_ends_stay_with_adam() -> None:
    ours = Convolutions()
    hidden = {name for name, weight in ours.named_parameters() if is_hidden(name, weight)}
    assert hidden == {"wide.weight", "tall.weight"}


def test_the_condition_of_a_painter_stays_with_adam() -> None:
    encoder = PromptEncoder(ModelConfig(width=8, heads=2, encoder_layers=1), 6)
    painters: dict[str, nn.Module] = {
        "down.1.layer.": UNet(encoder, (3, 8, 8), channels=(8, 8), attention=(1,), heads=2),
        "decoder.0.": DiffusionTransformer(encoder, (3, 8, 8), width=8, heads=2, layers=1),
    }
    for layer, painter in painters.items():
        hidden = {name for name, weight in painter.named_parameters() if is_hidden(name, weight)}
        assert f"{layer}feed_forward.expand.weight" in hidden
        assert not any("condition" in name or "gate" in name for name in hidden)


def test_workers_change_no_bit() -> None:
    alone, shared = Convolutions(), Convolutions()
    optimizers = [Muon(alone), Muon(shared, workers=2)]
    for update in range(3):
        for network, made in zip((alone, shared), optimizers, strict=True):
            fill_gradients(network, update)
            step(made)
    for one, other in zip(alone.parameters(), shared.parameters(), strict=True):
        assert torch.equal(one, other)
