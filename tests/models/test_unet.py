"""The U-Net and the diffusion Transformer: their grids, and a tiny one that learns to draw."""

import math

import pytest
import torch
from torch import Tensor

from seq2see.decoding.denoising import Denoising, denoise
from seq2see.models.diffusion import PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.noise import noise_process
from seq2see.models.unet import UNet, coordinates
from seq2see.recipe.schema import ModelConfig
from seq2see.training.denoising import denoising_loss, draw_noise

SIZE = 8
ACROSS, DOWN = 4, 5  # ids of two classes


def prompts() -> PromptEncoder:
    return PromptEncoder(ModelConfig(width=8, heads=2, encoder_layers=1, dropout=0.0), 6)


def test_attention_leaves_every_position_in_its_place() -> None:
    torch.manual_seed(1)
    model = UNet(prompts(), (3, 8, 12), channels=(8, 16), attention=(0, 1), heads=2)
    memory = model.read(torch.tensor([[4, 5]] * 2))
    x, condition = torch.randn(2, 8, 8, 12), torch.randn(2, 32)
    for i, stage in enumerate(model.down):  # whose attention adds nothing at first
        inside = stage.block(stage.resize(x), condition)
        x = stage(x, condition, memory.pairs[f"down.{i}"], None)
        positions = torch.unflatten(coordinates(stage.grid, inside.shape[1]), 0, stage.grid)
        assert torch.equal(x, inside + positions.permute(2, 0, 1))
    assert x.shape == (2, 16, 4, 6)


def test_coordinates_are_waves_along_rows_and_columns() -> None:
    encoded = coordinates((2, 3), 8).view(2, 3, 8)
    row, column = (1 + 0.5) / 2, (2 + 0.5) / 3
    expected = [
        f(math.pi * periods * place)
        for place in (row, column)
        for f in (math.sin, math.cos)
        for periods in (1, 8)
    ]
    torch.testing.assert_close(encoded[1, 2], torch.tensor(expected))
    assert torch.equal(encoded[0, 1, 4:], encoded[1, 1, 4:])  # of the column alone
    assert torch.equal(encoded[0, 0, :4], encoded[0, 2, :4])  # of the row alone


def test_a_place_has_the_same_coordinates_in_pictures_of_every_size() -> None:
    small, large = coordinates((3, 3), 16).view(3, 3, 16), coordinates((9, 9), 16).view(9, 9, 16)
    torch.testing.assert_close(small, large[1::3, 1::3])  # the centres of squares of nine


def test_weights_of_a_unet_do_not_depend_on_the_size_of_its_pictures() -> None:
    small, large = (
        UNet(prompts(), (3, size, size), channels=(8, 16), attention=(1,), heads=2)
        for size in (8, 16)
    )
    shapes = {name: weight.shape for name, weight in small.state_dict().items()}
    assert shapes == {name: weight.shape for name, weight in large.state_dict().items()}


def test_a_patch_of_the_transformer_is_painted_in_its_place() -> None:
    torch.manual_seed(1)
    model = DiffusionTransformer(prompts(), (3, 8, 12), width=16, heads=2, layers=1, patch=4)
    torch.nn.init.normal_(model.output.weight)
    x = torch.randn(1, 3, 8, 12, requires_grad=True)
    painted = model(x, torch.tensor([0.5]), model.read(torch.tensor([[4]])))
    (slopes,) = torch.autograd.grad(painted[0, 1, 5, 9], x)  # the gates are closed at first
    touched = slopes[0].abs().amax(0) > 0
    assert touched[4:, 8:].all() and touched.sum() == 16


def lines(count: int) -> tuple[Tensor, Tensor]:
    """Pictures of one bright row or one bright column, and their classes."""
    generator = torch.Generator().manual_seed(2)
    pictures = -torch.ones(count, 1, SIZE, SIZE)
    pictures[torch.arange(count), 0, torch.randint(SIZE, (count,), generator=generator)] = 1.0
    labels = torch.arange(count) % 2 + ACROSS
    down = (labels == DOWN)[:, None, None, None]
    return torch.where(down, pictures.transpose(2, 3), pictures), labels[:, None]


def right(pictures: Tensor, labels: Tensor) -> float:
    """The share of pictures whose rows differ more than their columns, or vice versa."""
    rows, columns = pictures[:, 0].mean(2).std(1), pictures[:, 0].mean(1).std(1)
    return ((rows < columns) == (labels[:, 0] == DOWN)).float().mean().item()


@pytest.mark.parametrize("name", ["noise", "velocity", "flow"])
def test_a_tiny_unet_learns_to_draw_by_class(name: str) -> None:
    torch.manual_seed(3)
    model = UNet(prompts(), (1, SIZE, SIZE), channels=(16, 16), attention=(1,), heads=2)
    process = noise_process(name)
    pictures, labels = lines(32)
    assert right(pictures, labels) == 1
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(60):
        drawn = draw_noise(f"noise/1/{epoch}", range(32), model.shape)
        loss = denoising_loss(model, process, pictures, labels, drawn) / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    wanted = torch.tensor([[ACROSS], [DOWN]] * 20)
    drawings = denoise(model.eval(), process, wanted, range(40), Denoising(steps=10, guidance=2.0))
    assert right(drawings, wanted) >= 0.9
