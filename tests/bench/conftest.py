"""Shared by the tests of `bench paint`: directories of tiny models with random weights."""

from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from seq2see.pictures.prompts import PaintingFormat, Shape
from seq2see.recipe.schema import Recipe
from seq2see.tasks.diffusion import Diffusion

RECIPE = """
task = "diffusion"

[data]
corpus = "scenes"

[model]
kind = "unet"
width = 8
heads = 2
encoder_layers = 1
patch = 2

[train]
steps = 1
batch_sentences = 6

[diffusion]
channels = [8, 16]
attention_levels = [0, 1]
steps = 2
test_pictures = 5
"""
DIT = RECIPE.replace('"unet"', '"dit"').replace("channels = [8, 16]\nattention_levels = [0, 1]", "")
WORDS = ("a", "red", "blue", "star", "ring", "left", "right", "of", "above", "below")


def write_model(folder: Path, recipe: str = RECIPE, shape: Shape = (3, 32, 32)) -> Path:
    """Write a model with random weights: none are zero, as in a new one, so that merging shows."""
    folder.mkdir()
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    format = PaintingFormat(shape, WORDS)
    format.save(folder)
    torch.manual_seed(1)
    model = Diffusion(Recipe.load(folder / "recipe.toml")).network(format)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    safetensors.torch.save_file(model.state_dict(), folder / "model.safetensors")
    return folder


@pytest.fixture(scope="session")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a U-Net of scenes, with 16 × 16 positions; read-only."""
    return write_model(tmp_path_factory.mktemp("painter") / "unet")


@pytest.fixture(scope="session")
def dit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a diffusion Transformer of scenes; read-only."""
    return write_model(tmp_path_factory.mktemp("painter") / "dit", DIT)
