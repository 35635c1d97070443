"""The U-Net and the diffusion Transformer: their grids, and a tiny one that learns to draw."""

import pytest
import torch
from torch import Tensor

from seq2see.decoding.denoising import Denoising, denoise
from seq2see.models.diffusion import PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.noise import noise_process
from seq2see.models.unet import UNet
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
        assert torch.equal(x, inside)
    assert x.shape == (2, 16, 4, 6)


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
