"""The Vision Transformer: patches, positions, pooling, companions, traces, and fewer tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2see.layers.trace import Trace
from seq2see.models.reduced import with_merging, with_pruning, with_top
from seq2see.models.vit import VisionTransformer
from seq2see.pictures.augment import PictureBatch
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.tasks.predict import logit_loss
from seq2see.text.specials import SPECIALS
from seq2see.training.update import Gradients

CHANNELS, HEIGHT, WIDTH, CLASSES = 3, 4, 6, 7  # in patches of 2: two rows of three
SETTINGS: dict[str, dict[str, Any]] = {
    "class": {},
    "mean": {"pool": "mean"},
    "post": {"norm": "post"},
    "bilinear": {"score": "bilinear", "attention_width": 8},
}
settings = pytest.mark.parametrize("name", SETTINGS)
pools = pytest.mark.parametrize("pool", ["class", "mean"])


def vit(**keys: Any) -> VisionTransformer:
    sizes = {"width": 12, "heads": 2, "encoder_layers": 3, "feed_forward": 20}
    sizes |= {"dropout": 0.0, "patch": 2}
    torch.manual_seed(7)
    config = ModelConfig.model_validate(sizes | keys)
    model = VisionTransformer(config, (CHANNELS, HEIGHT, WIDTH), CLASSES).double().eval()
    with torch.no_grad():  # away from the biases of 0, where a forgotten one would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def pixels(count: int = 5) -> Tensor:
    return torch.randn(
        count, CHANNELS, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(3)
    ).double()


def batch(pictures: Tensor) -> PictureBatch:
    labels = torch.arange(len(pictures)) % (CLASSES - len(SPECIALS)) + len(SPECIALS)
    return PictureBatch(pictures, labels, list(range(len(pictures))))


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_projected_patches_are_a_convolution_with_their_size_as_stride(overlap: int) -> None:
    model, pictures = vit(overlap=overlap), pixels()
    kernel = model.patches.weight.view(12, CHANNELS, 2 + 2 * overlap, 2 + 2 * overlap)
    convolved = functional.conv2d(pictures, kernel, model.patches.bias, stride=2, padding=overlap)
    close(model.patches(model.cut(pictures)), convolved.flatten(2).transpose(1, 2))


def test_a_patch_has_the_vectors_of_its_row_and_its_column() -> None:
    model = vit(pool="mean")
    none = torch.zeros(1, CHANNELS, HEIGHT, WIDTH).double()
    positions = model.embed(none)[0].view(2, 3, 12) - model.patches.bias
    for row in range(2):
        for column in range(3):
            expected = model.row_embedding.weight[row] + model.column_embedding.weight[column]
            close(positions[row, column], expected)


@settings
def test_a_picture_is_classified_as_if_it_were_alone(name: str) -> None:
    model, pictures = vit(**SETTINGS[name]), pixels()
    together = model(batch(pictures))
    assert together.shape == (5, CLASSES)
    for i in range(5):
        close(model(batch(pictures[i : i + 1]))[0], together[i])


@pools
def test_every_pixel_counts_and_so_does_its_place(pool: str) -> None:
    model, pictures = vit(pool=pool), pixels(1).requires_grad_()
    logits = model(batch(pictures))
    (slopes,) = torch.autograd.grad(logits[0, 5], pictures)
    assert (slopes.abs() > 1e-12).all()
    columns = pictures.detach().view(1, CHANNELS, HEIGHT, 3, 2)
    swapped = columns.flip(3).reshape(1, CHANNELS, HEIGHT, WIDTH)  # the same patches, elsewhere
    assert (model(batch(swapped)) - logits).abs().max() > 1e-3


@pools
def test_the_trace_has_every_layer_and_changes_nothing(pool: str) -> None:
    model, trace, tokens = vit(pool=pool), Trace(), 7 if pool == "class" else 6
    close(model(batch(pixels()), trace), model(batch(pixels())))
    assert list(trace.weights) == [f"encoder.{i}.self" for i in range(3)]
    for weights in trace.weights.values():
        assert weights.shape == (5, 2, tokens, tokens)
        close(weights.sum(-1), torch.ones(5, 2, tokens).double())


@pools
def test_encoding_is_embedding_layers_and_pooling(pool: str) -> None:
    model, pictures = vit(pool=pool), pixels()
    x = model.embed(pictures)
    for layer in model.encoder:
        x = layer(x)
    close(model.pool(x), model.encode(pictures))
    close(model.output(model.encode(pictures)), model(batch(pictures)))


@pools
def test_merging_and_pruning_nothing_change_nothing(pool: str) -> None:
    model, pictures = vit(pool=pool), batch(pixels())
    expected = model(pictures)
    assert torch.equal(with_merging(model, 0)(pictures), expected)
    assert torch.equal(with_pruning(model, 0.0)(pictures), expected)
    assert torch.equal(with_top(model, 1.0)(pictures), expected)


@pools
def test_merging_leaves_fewer_tokens(pool: str) -> None:
    model, trace, pictures = vit(pool=pool), Trace(), pixels()
    merged = with_merging(model, [2, 1, 0])
    logits = merged(batch(pictures), trace)
    tokens = 7 if pool == "class" else 6
    counts = [reduction.real.shape[1] for reduction in trace.reductions]
    assert counts == [tokens - 2, tokens - 3, tokens - 3]
    assert logits.shape == (5, CLASSES)
    assert (logits - model(batch(pictures))).abs().max() > 1e-6
    if pool == "class":  # whose token stays first and by itself
        assert all((reduction.source[:, 0] == 0).all() for reduction in trace.reductions)
        assert all((reduction.sizes[:, 0] == 1).all() for reduction in trace.reductions)
    for i in range(5):
        close(merged(batch(pictures[i : i + 1]))[0], logits[i])


def test_merging_equal_patches_preserves_their_mean() -> None:
    model = vit(pool="mean")
    with torch.no_grad():  # equal positions
        for embedding in (model.row_embedding, model.column_embedding):
            embedding.weight.zero_()
    pictures = pixels(2)[:, :, :2, :2].repeat(1, 1, 2, 3)
    close(with_merging(model, 2)(batch(pictures)), model(batch(pictures)))


def test_training_fills_every_gradient() -> None:
    class Pictures:
        lengths = np.tile([6, 1], (5, 1))

        def batch(self, lines: Sequence[int]) -> PictureBatch:
            return batch(pixels()[list(lines)])

    model, config = vit(dropout=0.1).train(), TrainConfig(steps=1)
    gradients = Gradients(model, lambda model, batch: logit_loss(model, batch, config), workers=2)
    assert gradients.fill(Pictures(), [[0, 1, 2, 3, 4]], "a").targets == 5
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"^patch \(3\) must divide a picture's height \(4\) and width \(6\)$"
    ):
        vit(patch=3)
    with pytest.raises(
        ValueError, match=r"^pixels has shape \(5, 3, 6, 4\); it must be \(B, 3, 4, 6\)$"
    ):
        vit().encode(pixels().transpose(2, 3))
