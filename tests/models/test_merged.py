"""Merged positions in diffusion models: parity with loops, companions, reuse, traces, options."""

import copy
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from seq2see.decoding.denoising import Denoising, Step, denoise
from seq2see.errors import InputError
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import DiffusionModel, PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.merged import (
    Matching,
    MergedAttention,
    MergedDiffusion,
    TokenMerging,
    with_merged_tokens,
)
from seq2see.models.noise import keyed, noise_process
from seq2see.models.unet import UNet
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

SHAPE = (3, 8, 12)
WORDS = 17
SMALL = 24  # positions of the coarse grid of the U-Net, and of the only one of the Transformer
KINDS: dict[str, tuple[type[UNet] | type[DiffusionTransformer], dict[str, Any]]] = {
    "unet": (UNet, {"channels": (16, 24), "attention": (0, 1), "heads": 2}),
    "dit": (DiffusionTransformer, {"width": 12, "heads": 3, "layers": 2, "patch": 2}),
}
FINE = {"unet": ["down.0", "up.1"], "dit": ["decoder.0", "decoder.1"]}
LEAST = {"unet": SMALL + 1, "dit": SMALL}  # so that these merge alone
kinds = pytest.mark.parametrize("kind", KINDS)
methods = pytest.mark.parametrize("method", ["all", "keys"])
PROMPTS = torch.tensor([[4, 9, 16, 5], [8, 6, PAD, PAD], [PAD] * 4])
TIME = torch.tensor([0.9, 0.5, 0.2], dtype=torch.float64)


def model_of(kind: str, dtype: torch.dtype = torch.float64) -> DiffusionModel:
    torch.manual_seed(7)
    config = ModelConfig(width=10, heads=2, encoder_layers=1, feed_forward=14, dropout=0.0)
    build, keys = KINDS[kind]
    model = build(PromptEncoder(config, WORDS), SHAPE, **keys).eval().to(dtype)
    with torch.no_grad():  # away from zeros, where errors would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def merged(kind: str, dtype: torch.dtype = torch.float64, **keys: Any) -> MergedDiffusion:
    return with_merged_tokens(
        model_of(kind, dtype), TokenMerging(**{"min_tokens": LEAST[kind]} | keys)
    )


def noisy(seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, *SHAPE, generator=generator).to(dtype)


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


class Loops(nn.Module):
    """Merge, attend and unmerge one picture, one position, one head at a time."""

    def __init__(self, inner: Any, name: str, grid: tuple[int, int], merging: TokenMerging) -> None:
        super().__init__()
        self.inner, self.name, self.grid, self.merging = inner, name, grid, merging
        self.query = inner.query

    def groups(self, x: Tensor) -> list[list[int]]:
        """The positions of one picture x (N, D) that become one."""
        height, width = self.grid
        generator = keyed(f"merge/{self.merging.seed}/{self.name}/0")
        inside = torch.randint(4, (height // 2, width // 2), generator=generator)
        destinations = [
            (2 * i + int(inside[i, j]) // 2) * width + 2 * j + int(inside[i, j]) % 2
            for i in range(height // 2)
            for j in range(width // 2)
        ]
        groups = {position: [position] for position in range(len(x))}
        likeness = functional.cosine_similarity(x[:, None], x[None], dim=-1)
        pairs = []
        for position in {*groups} - {*destinations}:
            target = max(destinations, key=lambda other: float(likeness[position, other]))
            pairs.append((float(likeness[position, target]), position, target))
        for _, position, target in sorted(pairs)[::-1][: int(self.merging.ratio * len(x))]:
            groups[target] += groups.pop(position)
        return list(groups.values())

    def forward(self, query: Tensor, *rest: Any, **keys: Any) -> tuple[Tensor, None]:
        output = torch.zeros_like(query)
        for b, x in enumerate(query):
            groups = self.groups(x)
            means = torch.stack([x[group].mean(0) for group in groups])  # (P, D)
            sizes = torch.tensor([len(group) for group in groups]).to(x)
            asking = means if self.merging.method == "all" else x
            q, k, v = (
                linear(rows).unflatten(1, (self.inner.heads, -1)).transpose(0, 1)  # (H, N, K)
                for linear, rows in (
                    (self.inner.query, asking),
                    (self.inner.key, means),
                    (self.inner.value, means),
                )
            )
            weights = (q @ k.transpose(1, 2) / q.shape[2] ** 0.5).exp()
            weights = weights * sizes if self.merging.proportional else weights
            heads = weights / weights.sum(-1, keepdim=True) @ v
            states = self.inner.output(heads.transpose(0, 1).flatten(1))
            if self.merging.method == "keys":
                output[b] = states
                continue
            for place, group in enumerate(groups):
                output[b, group] = states[place]
        return output, None


@kinds
@methods
@pytest.mark.parametrize("proportional", [True, False])
@pytest.mark.parametrize("ratio", [0.3, 0.75])
@torch.no_grad()
def test_plain_loops_agree(kind: str, method: str, proportional: bool, ratio: float) -> None:
    model = merged(kind, method=method, proportional=proportional, ratio=ratio)
    expected = copy.deepcopy(model.model)
    places = expected.places()
    for name in FINE[kind]:
        layer, grid = places[name]
        layer.self_attention = Loops(layer.self_attention, name, grid, model.merging)
    x = noisy()
    prediction = model(x, TIME, model.read(PROMPTS))
    close(prediction, expected(x, TIME, expected.read(PROMPTS)))
    assert (prediction - model.model(x, TIME, model.model.read(PROMPTS))).abs().max() > 1e-3


@kinds
@methods
def test_ratio_0_changes_no_bit(kind: str, method: str) -> None:
    model = merged(kind, torch.float32, ratio=0.0, method=method, cross=True, feed_forward=True)
    x, time = noisy(dtype=torch.float32), TIME.float()
    traces = Trace(), Trace()
    ours = model(x, time, model.read(PROMPTS), traces[0])
    plain = model.model(x, time, model.model.read(PROMPTS), traces[1])
    assert torch.equal(ours, plain)
    assert not traces[0].merged
    for name, weights in traces[0].weights.items():
        assert torch.equal(weights, traces[1].weights[name])


def test_only_grids_with_enough_positions_are_merged() -> None:
    assert [*merged("unet").merged()] == FINE["unet"]
    assert [*merged("unet", min_tokens=SMALL).merged()] == [*model_of("unet").places()]


@settings(max_examples=20, deadline=None)
@given(
    grid=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    ratio=st.floats(0.1, 0.75),
    seed=st.integers(0, 99),
)
@methods
def test_equal_positions_merge_without_a_trace(
    method: str, grid: tuple[int, int], ratio: float, seed: int
) -> None:
    """With proportional attention, cells of equal positions give what they gave before."""
    torch.manual_seed(seed)
    attention = MultiHeadAttention(6, 2).double()
    cells = torch.randn(2, 6, *grid, dtype=torch.float64)
    x = functional.interpolate(cells, scale_factor=2).flatten(2).transpose(1, 2)  # (B, N, D)
    shape = (2 * grid[0], 2 * grid[1])
    matching = Matching(TokenMerging(ratio, method), "down.0", shape)
    output, weights = MergedAttention(attention, matching)(x, x, need_weights=True)
    expected, open_weights = attention(x, x, need_weights=True)
    close(output, expected)
    close(weights, open_weights)


@kinds
@methods
def test_companions_do_not_matter(kind: str, method: str) -> None:
    model, x = merged(kind, method=method, cross=True, feed_forward=True), noisy()
    together = model(x, TIME, model.read(PROMPTS))
    for i in range(3):
        alone = model(x[i : i + 1], TIME[i : i + 1], model.read(PROMPTS[i : i + 1]))
        close(alone[0], together[i])
    single = merged(kind, torch.float32, method=method)
    x, time = x.float(), TIME.float()
    before = single(x, time, single.read(PROMPTS))
    others, prompts = noisy(4, torch.float32), PROMPTS.flip(0).contiguous()
    others[1], prompts[1] = x[1], PROMPTS[1]
    after = single(others, time, single.read(prompts))
    assert torch.equal(after[1], before[1])
    assert not torch.equal(after[2], before[2])


@kinds
def test_seeded_pictures_are_the_same_in_any_batch(kind: str) -> None:
    model, process = merged(kind), noise_process("velocity")
    seen: list[Step] = []
    settings = Denoising(steps=3, guidance=2.0)

    def draw(rows: list[int], **keys: Any) -> Tensor:
        return denoise(model, process, PROMPTS[rows], rows, settings, dtype=torch.float64, **keys)

    together = draw([0, 1, 2], watch=seen.append, traced=True)
    close(draw([1])[0], together[1])
    assert len(seen) == 3
    for step in seen:
        assert step.trace is not None
        assert [len(place) for place in step.trace.merged.values()] == [3] * len(FINE[kind])


@kinds
def test_the_model_stays_as_it_is_and_shares_its_weights(kind: str) -> None:
    model = model_of(kind)
    x, memory = noisy(), model.read(PROMPTS)
    before = model(x, TIME, memory)
    modules = [*model.named_modules()]
    both = with_merged_tokens(
        model, TokenMerging(min_tokens=LEAST[kind], cross=True, feed_forward=True)
    )
    run = both.read(PROMPTS)
    both(x, TIME, run)
    assert torch.equal(model(x, TIME, memory), before)
    assert [*model.named_modules()] == modules
    assert {*run.model.parameters()} == {*model.parameters()}
    first = both(x, TIME, both.read(PROMPTS))
    with torch.no_grad():
        model.places()[FINE[kind][0]].layer.self_attention.value.weight.mul_(2)
    assert (both(x, TIME, both.read(PROMPTS)) - first).abs().max() > 1e-3


@kinds
@methods
@pytest.mark.parametrize("cross", [False, True])
def test_the_trace_is_on_the_positions_of_the_picture(kind: str, method: str, cross: bool) -> None:
    model, trace, plain = merged(kind, method=method, cross=cross), Trace(), Trace()
    x, run = noisy(), model.read(PROMPTS)
    prediction = model(x, TIME, run, trace)
    close(prediction, model(x, TIME, model.read(PROMPTS)))
    model.model(x, TIME, run.prompted, plain)
    assert trace.weights.keys() == plain.weights.keys()
    for name, weights in trace.weights.items():
        assert weights.shape == plain.weights[name].shape
        close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert [*trace.merged] == FINE[kind]
    for name, place in trace.merged.items():
        assert place.shape == (3, run.matchings[name].shape[0] * run.matchings[name].shape[1])
        alike = place[:, :, None] == place[:, None]  # (B, N, N)
        assert (alike.sum(-1) > 1).any()
        for kind_, shared in (("self", method == "all"), ("cross", cross)):
            rows = trace.weights[f"{name}.{kind_}"].transpose(1, 2)  # (B, N, H, S)
            equal = (rows[:, :, None] == rows[:, None]).flatten(3).all(-1)
            assert equal[alike].all() == shared
        received = trace.weights[f"{name}.self"].transpose(1, 3)  # keys of a place share equally
        assert (received[:, :, None] == received[:, None]).flatten(3).all(-1)[alike].all()


@kinds
def test_a_matching_is_kept_for_so_many_steps_and_no_run_sees_another(kind: str) -> None:
    model = merged(kind, every=2)
    pictures = [noisy(seed) for seed in range(5)]

    def steps() -> list[tuple[Tensor, dict[str, Tensor]]]:
        run, states = model.read(PROMPTS), []
        for x in pictures:
            trace = Trace(weights=False)
            states.append((model(x, TIME, run, trace), trace.merged))
        return states

    first = steps()
    for name in FINE[kind]:
        sources = [places[name] for _, places in first]
        same = [torch.equal(one, two) for one, two in pairwise(sources)]
        assert same == [True, False, True, False]
    again = steps()
    for (one, _), (two, _) in zip(first, again, strict=True):
        assert torch.equal(one, two)


@kinds
def test_seeds_draw_other_destinations(kind: str) -> None:
    x = noisy()
    traces = [Trace(weights=False) for _ in range(2)]
    for seed, trace in enumerate(traces):
        model = merged(kind, ratio=0.75, seed=seed)
        model(x, TIME, model.read(PROMPTS), trace)
    for name in FINE[kind]:
        assert not torch.equal(traces[0].merged[name], traces[1].merged[name])


@kinds
@pytest.mark.parametrize("part", ["cross", "feed_forward"])
def test_other_sublayers_work_on_merged_positions_if_asked(kind: str, part: str) -> None:
    plain, model = merged(kind), merged(kind, **{part: True})
    x = noisy()
    rows: list[int] = []
    name = FINE[kind][0]
    place = model.places()[name]
    sublayer = place.layer.cross_attention if part == "cross" else place.layer.feed_forward
    sublayer.register_forward_pre_hook(lambda _, given: rows.append(given[0].shape[1]))
    prediction = model(x, TIME, model.read(PROMPTS))
    assert rows == [place.grid[0] * place.grid[1] // 2]
    assert (prediction - plain(x, TIME, plain.read(PROMPTS))).abs().max() > 1e-6


@kinds
@methods
def test_every_weight_gets_a_gradient(kind: str, method: str) -> None:
    model = merged(kind, method=method, cross=True, feed_forward=True)
    model(noisy(), TIME, model.read(PROMPTS)).square().sum().backward()
    for name, parameter in model.named_parameters():
        if name.endswith("attention.key.bias"):  # moves all scores of a query alike: no effect
            continue
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-12, name


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ratio": -0.1}, "ratio (-0.1) must be between 0 and 0.75"),
        ({"ratio": 0.8}, "ratio (0.8) must be between 0 and 0.75"),
        ({"ratio": float("nan")}, "ratio (nan) must be between 0 and 0.75"),
        ({"method": "values"}, "method 'values' is not one of all, keys"),
        ({"every": 0}, "every (0) must be at least 1"),
        ({"min_tokens": 0}, "min_tokens (0) must be at least 1"),
        (
            {"min_tokens": 97},
            "the finest layer with attention has 96 positions; "
            "layers merge with at least 97 (min_tokens)",
        ),
    ],
)
def test_wrong_settings_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        merged("unet", **keys)
    assert str(error.value) == message
