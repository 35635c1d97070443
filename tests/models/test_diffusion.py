"""The contract of diffusion models, of every kind: companions, prompts, traces, sizes, a seam."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from seq2see.layers.trace import Trace
from seq2see.models.diffusion import DiffusionModel, PromptEncoder, waves
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.noise import PROCESSES
from seq2see.models.unet import UNet
from seq2see.models.weights import weights
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD
from seq2see.training import checkpoint
from seq2see.training.denoising import Draws, denoising_loss, draw_noise
from seq2see.training.optimizer import optimizer
from seq2see.training.update import Gradients

SHAPE = (3, 8, 12)  # channels, height, width
WORDS = 17
KINDS: dict[str, tuple[type[UNet] | type[DiffusionTransformer], dict[str, Any]]] = {
    "unet": (UNet, {"channels": (16, 24), "attention": (1,), "heads": 2}),
    "unet-deep": (UNet, {"channels": (16, 24, 32), "attention": (0, 2), "heads": 4, "blocks": 2}),
    "unet-patch": (UNet, {"channels": (24, 16), "attention": (0, 1), "heads": 2, "patch": 2}),
    "dit": (DiffusionTransformer, {"width": 12, "heads": 3, "layers": 2, "patch": 2}),
}
# Rows and columns of the positions that attend to each other, by layer.
GRIDS = {
    "unet": {"down.1": (4, 6), "middle.0": (4, 6), "up.0": (4, 6)},
    "unet-deep": {
        **{"down.0": (8, 12), "down.1": (8, 12), "down.4": (2, 3), "down.5": (2, 3)},
        "middle.0": (2, 3),
        **{"up.0": (2, 3), "up.1": (2, 3), "up.4": (8, 12), "up.5": (8, 12)},
    },
    "unet-patch": {
        **{"down.0": (4, 6), "down.1": (2, 3), "middle.0": (2, 3)},
        **{"up.0": (2, 3), "up.1": (4, 6)},
    },
    "dit": {"decoder.0": (4, 6), "decoder.1": (4, 6)},
}
kinds = pytest.mark.parametrize("kind", KINDS)
PROMPTS = torch.tensor([[4, 9, 16, 5, 5], [8, 6, PAD, PAD, PAD], [PAD] * 5, [7, 4, 8, 9, PAD]])
TIME = torch.tensor([0.9, 0.5, 0.2, 0.7])


def fresh(kind: str, shape: tuple[int, int, int] = SHAPE, **keys: Any) -> DiffusionModel:
    torch.manual_seed(7)
    config = ModelConfig(width=10, heads=2, encoder_layers=2, feed_forward=14, dropout=0.0)
    build, settings = KINDS[kind]
    return build(PromptEncoder(config, WORDS), shape, **settings | keys).eval()


def model_of(kind: str, dtype: torch.dtype = torch.float64) -> DiffusionModel:
    model = fresh(kind).to(dtype)
    with torch.no_grad():  # away from zeros, where errors would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def noisy(dtype: torch.dtype = torch.float64, seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, *SHAPE, generator=generator).to(dtype)


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@kinds
def test_a_picture_is_predicted_as_if_it_were_alone(kind: str) -> None:
    model, x, time = model_of(kind), noisy(), TIME.double()
    together = model(x, time, model.read(PROMPTS))
    assert together.shape == x.shape
    for i, prompt in enumerate(PROMPTS):
        words = max(1, int((prompt != PAD).sum()))  # alone, it needs no padding
        memory = model.read(prompt[None, :words])
        close(model(x[i : i + 1], time[i : i + 1], memory)[0], together[i])


@kinds
def test_other_companions_of_the_same_shapes_change_no_bit(kind: str) -> None:
    model, x, time = model_of(kind, torch.float32), noisy(torch.float32), TIME
    before = model(x, time, model.read(PROMPTS))
    others, prompts, times = noisy(torch.float32, seed=4), PROMPTS.flip(0), TIME.flip(0)
    others[1], prompts[1], times[1] = x[1], PROMPTS[1], TIME[1]
    after = model(others, times, model.read(prompts))
    assert torch.equal(after[1], before[1])
    assert not torch.equal(after[2], before[2])


@kinds
def test_time_prompt_and_every_pixel_count(kind: str) -> None:
    model, time = model_of(kind), TIME.double()
    x = noisy().requires_grad_()
    memory = model.read(PROMPTS)
    before = model(x, time, memory)
    (slopes,) = torch.autograd.grad(before[:, 1, 2, 3].sum(), x, retain_graph=True)
    assert (slopes.abs() > 1e-12).all()
    assert (model(x, time.flip(0), memory) - before).abs().max() > 1e-3
    changed = PROMPTS.clone()
    changed[0, 1] = 6
    assert ((model(x, time, model.read(changed)) - before)[0].abs() > 1e-9).any()
    swapped = PROMPTS.clone()
    swapped[0, :2] = PROMPTS[0, :2].flip(0)  # the order of words counts, too
    assert ((model(x, time, model.read(swapped)) - before)[0].abs() > 1e-9).any()


@kinds
def test_the_empty_prompt_is_a_memory_of_its_own(kind: str) -> None:
    model, x, time = model_of(kind), noisy()[:1], TIME[:1].double()
    long, short = (model(x, time, model.read(torch.full((1, size), PAD))) for size in (5, 1))
    close(long, short)
    for word in range(3, WORDS):
        prompted = model(x, time, model.read(torch.tensor([[word]])))
        assert (prompted - short).abs().max() > 1e-6


@kinds
def test_the_trace_has_every_attention_and_changes_nothing(kind: str) -> None:
    model, x, time, trace = model_of(kind), noisy(), TIME.double(), Trace()
    memory = model.read(PROMPTS, trace)
    assert list(trace.weights) == ["encoder.0.self", "encoder.1.self"]
    close(model(x, time, memory, trace), model(x, time, memory))
    grids = {name: place.grid for name, place in model.places().items()}
    assert grids == GRIDS[kind]
    heads = KINDS[kind][1]["heads"]
    for name, (rows, columns) in GRIDS[kind].items():
        to_self, to_prompt = (trace.weights[f"{name}.{which}"] for which in ("self", "cross"))
        assert to_self.shape == (4, heads, rows * columns, rows * columns)
        assert to_prompt.shape == (4, heads, rows * columns, 5)
        for each in (to_self, to_prompt):
            close(each.sum(-1), torch.ones(4, heads, rows * columns).double())
        real = PROMPTS != PAD
        real[2, 0] = True  # the empty prompt is one state
        assert (to_prompt.amax((1, 2)) > 0).equal(real)
    assert len(trace.weights) == 2 + 2 * len(GRIDS[kind])
    assert trace.on_tokens().keys() == trace.weights.keys()


@kinds
def test_every_weight_gets_a_gradient(kind: str) -> None:
    model = model_of(kind).train()
    process, drawn = PROCESSES["velocity"], draw_noise("noise/1/1", range(4), SHAPE)
    drawn = drawn._replace(time=TIME.double(), noise=drawn.noise.double())
    loss = denoising_loss(model, process, noisy(), PROMPTS, drawn)
    loss.backward()
    for name, parameter in model.named_parameters():
        if name.endswith("attention.key.bias"):  # moves all scores of a query alike: no effect
            continue
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-12, name


@kinds
def test_the_loss_of_a_batch_is_the_sum_of_its_pictures(kind: str) -> None:
    model, process, pictures = model_of(kind, torch.float32), PROCESSES["noise"], noisy()
    args = (pictures.float(), PROMPTS)

    def loss(*lines: int) -> Tensor:
        drawn = draw_noise("noise/1/1", lines, SHAPE)
        return denoising_loss(model, process, *(x[list(lines)] for x in args), drawn)

    torch.testing.assert_close(loss(0, 1, 2, 3), sum(loss(line) for line in range(4)))


@dataclass(frozen=True)
class PromptedBatch:
    """Lines of the four examples, as the training loop sees them."""

    lines: Sequence[int]

    @property
    def target_tokens(self) -> int:
        return len(self.lines)

    def to(self, device: torch.device) -> "PromptedBatch":
        return self


class FourExamples:
    lengths = np.array([[6, 24], [3, 24], [1, 24], [5, 24]])

    def batch(self, lines: Sequence[int]) -> Any:
        return PromptedBatch(lines)


@kinds
@pytest.mark.parametrize("workers", [1, 2])
def test_the_training_loop_can_train_it(kind: str, workers: int) -> None:
    model, process = model_of(kind).train(), PROCESSES["flow"]

    def loss(replica: nn.Module, batch: PromptedBatch) -> Tensor:
        time, noise, chance = draw_noise("noise/1/1", batch.lines, SHAPE)
        drawn = Draws(time.double(), noise.double(), chance)
        rows = list(batch.lines)
        return denoising_loss(replica, process, noisy()[rows], PROMPTS[rows], drawn)

    (loss(model, PromptedBatch(range(4))) / 4).backward()
    expected = {name: weight.grad for name, weight in model.named_parameters()}
    update = Gradients(model, loss, workers).fill(FourExamples(), [[0, 1, 2, 3]], "dropout/1")
    assert update.targets == 4
    for name, weight in model.named_parameters():
        close(weight.grad, expected[name])
    step = optimizer(model, "muon")
    step.step()
    saved = checkpoint.optimizer_tensors(model, step)
    assert safetensors.torch.load(safetensors.torch.save(saved)).keys() == saved.keys()


@kinds
def test_a_fresh_model_predicts_nothing_and_its_layers_add_nothing(kind: str) -> None:
    model, x = fresh(kind), noisy(torch.float32)
    assert (model(x, TIME, model.read(PROMPTS)) == 0).all()
    for name, place in model.places().items():
        # A layer that adds nothing leaves every position where it was.
        width = place.layer.self_attention.output.out_features
        rows = torch.randn(2, place.grid[0] * place.grid[1], width)
        memory = model.read(PROMPTS[:2]).pairs[name]
        condition = () if kind != "dit" else (torch.randn(2, width),)
        assert torch.equal(place.layer(rows, *condition, memory), rows)


class Wrapped(nn.Module):
    """Self-attention with something before and after it, such as merging and unmerging."""

    def __init__(self, inner: Any, factor: float = 1.0) -> None:
        super().__init__()
        self.inner, self.factor = inner, factor
        self.query = inner.query
        self.sizes: list[tuple[int, ...]] = []

    def forward(self, query: Tensor, *rest: Any, **keys: Any) -> tuple[Tensor, Tensor | None]:
        self.sizes.append(tuple(query.shape))
        output, weights = self.inner(query, *rest, **keys)
        return output * self.factor, weights


@kinds
def test_self_attention_can_be_wrapped_without_the_model_knowing(kind: str) -> None:
    model, x, time = model_of(kind), noisy(), TIME.double()
    memory = model.read(PROMPTS)
    before = model(x, time, memory)
    wrappers: dict[str, Wrapped] = {}
    for name, place in model.places().items():
        wrappers[name] = Wrapped(place.layer.self_attention)
        place.layer.self_attention = wrappers[name]
    assert torch.equal(model(x, time, memory), before)
    for name, (rows, columns) in GRIDS[kind].items():
        ((batch, length, _),) = wrappers[name].sizes
        assert (batch, length) == (4, rows * columns)
    for wrapper in wrappers.values():
        wrapper.factor = 0.0
        assert (model(x, time, memory) - before).abs().max() > 1e-6
        wrapper.factor = 1.0


@kinds
def test_weights_can_be_saved(kind: str) -> None:
    model = fresh(kind)
    saved = safetensors.torch.load(safetensors.torch.save(weights(model)))
    assert saved.keys() == weights(model).keys()


@pytest.mark.parametrize(
    ("kind", "shape", "keys", "message"),
    [
        ("unet-deep", (3, 30, 32), {}, "height (30) must be divisible by 4"),
        ("unet-deep", (3, 32, 6), {}, "width (6) must be divisible by 4"),
        ("unet-patch", (3, 32, 6), {}, "width (6) must be divisible by 4"),
        ("dit", (3, 9, 8), {}, "height (9) must be divisible by 2"),
        ("unet", SHAPE, {"channels": (16, 12)}, "channels (12) must be divisible by 8"),
        ("unet", SHAPE, {"attention": (2,)}, "attention at level 2: the levels are 0 to 1"),
        ("unet", SHAPE, {"heads": 5}, "width (24) must be divisible by heads (5)"),
        ("dit", SHAPE, {"heads": 5}, "width (12) must be divisible by heads (5)"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    kind: str, shape: tuple[int, int, int], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError) as error:
        fresh(kind, shape, **keys)
    assert str(error.value) == message


@kinds
def test_inputs_of_other_sizes_are_refused(kind: str) -> None:
    model = fresh(kind)
    memory = model.read(PROMPTS)
    with pytest.raises(ValueError, match=r"^x has shape \(4, 3, 12, 8\); it must be \(B, 3, 8, 12"):
        model(torch.zeros(4, 3, 12, 8), TIME, memory)
    with pytest.raises(ValueError, match=r"^time has shape \(1,\); it must be \(4,\)"):
        model(torch.zeros(4, *SHAPE), TIME[:1], memory)
    with pytest.raises(ValueError, match=r"^prompts have shape \(4, 0\); it must be \(batch, len"):
        model.read(PROMPTS[:, :0])


def test_times_are_encoded_like_positions() -> None:
    encoded = waves(torch.tensor([0.0, 0.25, 1.0], dtype=torch.float64), 6)
    for row, position in zip(encoded, (0, 250, 1000), strict=True):
        angles = torch.tensor([position / 10000 ** (2 * i / 6) for i in range(3)]).double()
        torch.testing.assert_close(row, torch.cat([angles.sin(), angles.cos()]), rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match=r"width \(5\) must be even"):
        waves(torch.zeros(1), 5)
