"""The Vision Transformer: patches, positions, pooling, companions, traces, and fewer tokens."""

from typing import Any

import pytest
import torch
from seq2see.training.packed import answers
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch
from seq2see.layers.trace import Trace
from seq2see.models.vit import VisionTransformer
from seq2see.recipe.schema import ModelConfig, TrainConfig
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
    sizes = {
        "width": 12,
        "heads": 2,
        "encoder_layers": 3,
        "feed_forward": 20,
        "dropout": 0.0,
        "patch": 2,
    }
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


def batch(shown: Tensor) -> Batch:
    answers = torch.arange(len(shown))[:, None] % (CLASSES - len(SPECIALS)) + len(SPECIALS)
    return Batch(shown, answers, answers, list(range(len(shown))))


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_patches_projected_are_a_convolution_whose_stride_is_their_size(overlap: int) -> None:
    model, shown = vit(overlap=overlap), pixels()
    kernel = model.patches.weight.view(12, CHANNELS, 2 + 2 * overlap, 2 + 2 * overlap)
    convolved = functional.conv2d(shown, kernel, model.patches.bias, stride=2, padding=overlap)
    close(model.patches(model.cut(shown)), convolved.flatten(2).transpose(1, 2))


def test_a_patch_has_the_vectors_of_its_row_and_its_column() -> None:
    model = vit(pool="mean")
    none = torch.zeros(1, CHANNELS, HEIGHT, WIDTH).double()
    found = model.embed(none)[0].view(2, 3, 12) - model.patches.bias
    for row in range(2):
        for column in range(3):
            close(
                found[row, column],
                model.row_embedding.weight[row] + model.column_embedding.weight[column],
            )


@settings
def test_a_picture_is_classified_as_if_it_were_alone(name: str) -> None:
    model, shown = vit(**SETTINGS[name]), pixels()
    together = model(batch(shown))
    assert together.shape == (5, 1, CLASSES)
    for i in range(5):
        close(model(batch(shown[i : i + 1]))[0], together[i])


@pools
def test_every_pixel_counts_and_so_does_its_place(pool: str) -> None:
    model, shown = vit(pool=pool), pixels(1).requires_grad_()
    logits = model(batch(shown))
    (slopes,) = torch.autograd.grad(logits[0, 0, 5], shown)
    assert (slopes.abs() > 1e-12).all()
    swapped = (
        shown.detach().view(1, CHANNELS, 2, 2, 3, 2).flip(4).reshape(1, CHANNELS, HEIGHT, WIDTH)
    )
    assert (model(batch(swapped)) - logits).abs().max() > 1e-3  # the same patches, elsewhere


@pools
def test_the_trace_has_every_layer_and_changes_nothing(pool: str) -> None:
    model, trace, tokens = vit(pool=pool), Trace(), 7 if pool == "class" else 6
    close(model(batch(pixels()), trace), model(batch(pixels())))
    assert list(trace.weights) == [f"encoder.{i}.self" for i in range(3)]
    for weights in trace.weights.values():
        assert weights.shape == (5, 2, tokens, tokens)
        close(weights.sum(-1), torch.ones(5, 2, tokens).double())


@pools
def test_the_steps_are_embedding_layers_and_pooling(pool: str) -> None:
    model, shown = vit(pool=pool), pixels()
    x = model.embed(shown)
    for layer in model.encoder:
        x = layer(x)
    close(model.pool(x), model.encode(shown))
    close(model.output(model.encode(shown))[:, None], model(batch(shown)))


@pools
def test_merging_and_pruning_nothing_change_nothing(pool: str) -> None:
    model, shown = vit(pool=pool), batch(pixels())
    expected = model(shown)
    assert torch.equal(model.with_merging(0)(shown), expected)
    assert torch.equal(model.with_pruning(0.0)(shown), expected)
    assert torch.equal(model.with_top(1.0)(shown), expected)


@pools
def test_merging_goes_on_with_fewer_tokens(pool: str) -> None:
    model, trace, shown = vit(pool=pool), Trace(), pixels()
    merged = model.with_merging([2, 1, 0])
    logits = merged(batch(shown), trace)
    tokens = 7 if pool == "class" else 6
    assert [reduction.real.shape[1] for reduction in trace.reductions] == [
        tokens - 2,
        tokens - 3,
        tokens - 3,
    ]
    assert logits.shape == (5, 1, CLASSES) and (logits - model(batch(shown))).abs().max() > 1e-6
    if pool == "class":
        assert all(
            (reduction.source[:, 0] == 0).all() for reduction in trace.reductions
        )  # it stays where it is
        assert all((reduction.sizes[:, 0] == 1).all() for reduction in trace.reductions)
    for i in range(5):
        close(merged(batch(shown[i : i + 1]))[0], logits[i])


def test_the_mean_of_equal_patches_is_the_same_however_many_were_merged() -> None:
    model = vit(pool="mean")
    with torch.no_grad():  # places that cannot be told apart
        for embedding in (model.row_embedding, model.column_embedding):
            embedding.weight.zero_()
    shown = pixels(2)[:, :, :2, :2].repeat(1, 1, 2, 3)
    close(model.with_merging(2)(batch(shown)), model(batch(shown)))


def test_training_fills_every_gradient() -> None:
    model = vit(dropout=0.1).train()
    found = answers(model, batch(pixels()))
    logits, targets = found.logits, found.targets
    assert (
        logits.shape == (5, CLASSES)
        and targets.tolist() == batch(pixels()).target_out[:, 0].tolist()
    )
    pairs = [(list(range(6)), answer) for answer in batch(pixels()).target_out.tolist()]
    gradients = Gradients(
        model, TrainConfig(steps=1), 2, lambda _, lines: batch(pixels()[list(lines)])
    )
    assert gradients.fill(pairs, [[0, 1, 2, 3, 4]], "a").tokens == 5
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0
        for parameter in model.parameters()
    )


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"^patch \(3\) must divide a picture's height \(4\) and width \(6\)$"
    ):
        vit(patch=3)
    with pytest.raises(
        ValueError, match=r"^pixels has shape \(5, 3, 6, 4\); it must be \(B, 3, 4, 6\)$"
    ):
        vit().encode(pixels().transpose(2, 3))
