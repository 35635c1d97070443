"""Sampling with real models, merged or not: companions, seeds, ratio 0, and guidance 0 and 1."""

from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.decoding.denoising import SAMPLERS, Denoising, denoise
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import DiffusionModel, PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.merged import MergedDiffusion, TokenMerging, with_merged_tokens
from seq2see.models.noise import PROCESSES
from seq2see.models.unet import UNet
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

WORDS = 13
kinds = pytest.mark.parametrize("kind", ["unet", "dit"])
ratios = pytest.mark.parametrize("ratio", [None, 0.3, 0.75])
few = settings(max_examples=6, deadline=None)
words = st.lists(st.integers(4, WORDS - 1), max_size=4)  # of a prompt; none in the empty one
pictures = st.lists(st.tuples(words, st.integers(0, 99)), min_size=2, max_size=3)
samplings = st.builds(
    Denoising,
    sampler=st.sampled_from([*SAMPLERS]),
    steps=st.integers(1, 3),
    guidance=st.sampled_from([0.0, 0.7, 1.0, 3.0]),
    clip=st.none(),  # which would hide differences
)
processes = st.sampled_from([*PROCESSES.values()])


@cache
def model_of(
    kind: str, ratio: float | None, dtype: torch.dtype = torch.float64
) -> DiffusionModel | MergedDiffusion:
    """A model of 6 × 8 positions, all of whose weights count."""
    torch.manual_seed(5)
    config = ModelConfig(width=6, heads=2, encoder_layers=1, feed_forward=10, dropout=0.0)
    prompts = PromptEncoder(config, WORDS)
    model: DiffusionModel
    if kind == "unet":
        model = UNet(prompts, (2, 6, 8), channels=(8, 16), attention=(0,), heads=2)
    else:
        model = DiffusionTransformer(prompts, (2, 12, 16), width=8, heads=2, layers=2)
    model = model.eval().to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model if ratio is None else with_merged_tokens(model, TokenMerging(ratio, min_tokens=48))


def padded(prompts: list[list[int]]) -> Tensor:
    longest = max(1, *map(len, prompts))
    return torch.tensor([prompt + [PAD] * (longest - len(prompt)) for prompt in prompts])


@kinds
@ratios
@few
@given(drawn=pictures, process=processes, sampling=samplings)
def test_a_batch_of_prompts_equals_each_alone(
    kind: str, ratio: float | None, drawn: Any, process: Any, sampling: Denoising
) -> None:
    model = model_of(kind, ratio)
    prompts, seeds = zip(*drawn, strict=True)
    keys: dict[str, Any] = {"settings": sampling, "dtype": torch.float64}
    together = denoise(model, process, padded([*prompts]), seeds, **keys)
    for prompt, seed, picture in zip(prompts, seeds, together, strict=True):
        alone = denoise(model, process, torch.tensor([prompt or [PAD]]), [seed], **keys)
        torch.testing.assert_close(alone[0], picture, rtol=1e-9, atol=1e-9)


@kinds
@ratios
@few
@given(drawn=pictures, others=st.integers(0, 99), sampling=samplings)
def test_companions_of_the_same_shape_change_no_bit(
    kind: str, ratio: float | None, drawn: Any, others: int, sampling: Denoising
) -> None:
    model, process = model_of(kind, ratio, torch.float32), PROCESSES["velocity"]
    prompts, seeds = zip(*drawn, strict=True)
    ids = padded([*prompts])
    before = denoise(model, process, ids, seeds, sampling)
    changed = torch.randint(4, WORDS, ids.shape, generator=torch.Generator().manual_seed(others))
    changed[1] = ids[1]
    after = denoise(model, process, changed, [others, seeds[1], *range(len(seeds) - 2)], sampling)
    assert torch.equal(after[1], before[1])


@kinds
@few
@given(drawn=pictures, process=processes, sampling=samplings)
def test_ratio_0_paints_the_same_bits(
    kind: str, drawn: Any, process: Any, sampling: Denoising
) -> None:
    plain, merged = (model_of(kind, ratio, torch.float32) for ratio in (None, 0.0))
    prompts, seeds = zip(*drawn, strict=True)
    ids = padded([*prompts])
    ours = denoise(merged, process, ids, seeds, sampling)
    assert torch.equal(ours, denoise(plain, process, ids, seeds, sampling))
    half = denoise(model_of(kind, 0.5, torch.float32), process, ids, seeds, sampling)
    assert not torch.equal(ours, half)


class Always:
    """Reads the same prompt whatever it is given, so that guidance has nothing to add."""

    def __init__(self, model: Any, prompt: list[int]) -> None:
        self.model = model
        self.shape = model.shape
        self.prompt = torch.tensor([prompt])

    def read(self, prompts: Tensor) -> Any:
        return self.model.read(self.prompt.expand(len(prompts), -1))

    def __call__(self, x: Tensor, time: Tensor, memory: Any, trace: Trace | None = None) -> Tensor:
        prediction: Tensor = self.model(x, time, memory, trace)
        return prediction


@kinds
@ratios
@few
@given(
    prompt=words.filter(bool),
    seed=st.integers(0, 99),
    process=processes,
    sampler=st.sampled_from([*SAMPLERS]),
    guidance=st.floats(0.1, 8.0),
)
def test_guidance_1_is_the_model_with_the_prompt_and_0_without(
    kind: str,
    ratio: float | None,
    prompt: list[int],
    seed: int,
    process: Any,
    sampler: str,
    guidance: float,
) -> None:
    model = model_of(kind, ratio)

    def draw(model: Any, guidance: float) -> Tensor:
        sampling = Denoising(sampler, steps=2, guidance=guidance, clip=None)
        ids = torch.tensor([prompt])
        return denoise(model, process, ids, [seed], sampling, dtype=torch.float64)

    prompted, plain = draw(model, 1.0), draw(model, 0.0)
    for ours, read in ((prompted, prompt), (plain, [PAD])):
        expected = draw(Always(model, read), guidance)
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)
    assert (prompted - plain).abs().max() > 1e-6
