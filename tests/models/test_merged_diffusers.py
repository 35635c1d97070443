"""Token merging in a small random U-Net of diffusers: parity, restoring, grids, errors."""

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.models.merged import match
from seq2see.models.merged_diffusers import MergingProcessor, Step, merge_in

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")
    from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

HEIGHT, WIDTH = 6, 10  # of the latent picture; 3 × 5 one level below


@pytest.fixture
def unet() -> Any:
    torch.manual_seed(1)
    return diffusers.UNet2DConditionModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=2,
        cross_attention_dim=5,
    ).eval()


@torch.no_grad()
def predict(unet: Any, rows: slice = slice(None), time: Any = 7, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, HEIGHT, WIDTH, generator=generator)
    prompt = torch.randn(2, 4, 5, generator=generator)
    return unet(x[rows], time, encoder_hidden_states=prompt[rows]).sample  # type: ignore[no-any-return]


def lengths(unet: Any) -> dict[str, list[tuple[int, int]]]:
    """Queries and keys of every self-attention, while the model predicts."""
    seen: dict[str, list[tuple[int, int]]] = {}

    class Counting(AttnProcessor2_0):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __call__(self, attn: Any, x: Tensor, memory: Any = None, *rest: Any) -> Any:
            keys = x if memory is None else memory
            seen.setdefault(self.name, []).append((x.shape[1], keys.shape[1]))
            return super().__call__(attn, x, memory, *rest)

    for name, layer in unet.named_modules():
        if name.endswith("attn1"):
            layer.processor.inner = Counting(name)
    predict(unet)
    return seen


@pytest.mark.parametrize("method", ["all", "keys"])
@pytest.mark.parametrize("proportional", [False, True])
def test_a_layer_attends_to_means_of_merged_positions(
    unet: Any, method: str, proportional: bool
) -> None:
    plain = predict(unet)
    merge_in(unet, 0.5, method=method, proportional=proportional, seed=3)
    name = "down_blocks.0.attentions.0.transformer_blocks.0.attn1"
    layer = unet.get_submodule(name)
    calls: list[tuple[Tensor, Tensor]] = []
    layer.register_forward_hook(lambda _, given, output: calls.append((given[0], output)))
    assert (predict(unet) - plain).abs().max() > 1e-5
    ((x, output),) = calls
    reduction = match(x, (HEIGHT, WIDTH), 0.5, f"merge/3/{name}/7.0")
    merged = reduction.merge(x)
    assert merged.shape == (2, HEIGHT * WIDTH // 2, 8)

    def heads(linear: nn.Module, states: Tensor) -> Tensor:
        return linear(states).unflatten(2, (layer.heads, -1)).transpose(1, 2)  # type: ignore[no-any-return]

    query = heads(layer.to_q, merged if method == "all" else x)
    key, value = heads(layer.to_k, merged), heads(layer.to_v, merged)
    weights = (query @ key.transpose(2, 3) * layer.scale).exp()
    weights = weights * reduction.sizes[:, None, None] if proportional else weights
    context = weights / weights.sum(-1, keepdim=True) @ value
    expected = layer.to_out[0](context.transpose(1, 2).flatten(2))
    expected = reduction.unmerge(expected) if method == "all" else expected
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["all", "keys"])
def test_only_fine_grids_are_merged(unet: Any, method: str) -> None:
    fine, coarse = HEIGHT * WIDTH, 15
    for max_downsample in (1, 2):
        merge_in(unet, 0.5, method=method, max_downsample=max_downsample)
        left = {fine: fine // 2, coarse: coarse - 7 if max_downsample == 2 else coarse}
        seen = [call for calls in lengths(unet).values() for call in calls]
        queries = left if method == "all" else {fine: fine, coarse: coarse}
        assert {*seen} == {(queries[n], left[n]) for n in (fine, coarse)}
        merge_in(unet, 0)


def test_ratio_0_restores_every_bit_and_processor(unet: Any) -> None:
    unet.set_attn_processor(AttnProcessor())
    processors = {**unet.attn_processors}
    before = predict(unet)
    merge_in(unet, 0.5)
    merge_in(SimpleNamespace(unet=unet), 0.3)  # replaces, does not nest
    merging = [one for one in unet.attn_processors.values() if isinstance(one, MergingProcessor)]
    assert merging and not any(isinstance(one.inner, MergingProcessor) for one in merging)
    assert len(unet._forward_pre_hooks) == 1
    merge_in(unet, 0)
    assert unet.attn_processors == processors
    assert not unet._forward_pre_hooks
    assert torch.equal(predict(unet), before)


def test_pictures_depend_on_seed_and_timestep_but_not_on_companions_or_history(unet: Any) -> None:
    merge_in(unet, 0.75, seed=1)
    first = predict(unet)
    predict(unet, time=3, seed=5)
    assert torch.equal(predict(unet, time=torch.tensor(7)), first)
    torch.testing.assert_close(predict(unet, slice(1, 2)), first[1:], rtol=1e-4, atol=1e-5)
    merge_in(unet, 0.75, seed=2)
    assert not torch.equal(predict(unet), first)


@pytest.mark.parametrize(
    ("length", "max_downsample", "grid"),
    [(63, 1, (7, 9)), (20, 1, None), (20, 2, (4, 5)), (6, 4, (2, 3)), (21, 8, None)],
)
def test_grids_follow_from_the_size_of_the_picture(
    length: int, max_downsample: int, grid: tuple[int, int] | None
) -> None:
    step = Step(nn.Identity())
    step.size = (7, 9)
    assert step.grid(length, max_downsample) == grid


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ratio": 0.9}, "ratio (0.9) must be between 0 and 0.75"),
        ({"method": "values"}, "method 'values' is not one of all, keys"),
        ({"max_downsample": 0}, "max_downsample (0) must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(unet: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        merge_in(unet, **keys)
    assert str(error.value) == message


@pytest.mark.parametrize("other", [nn.Linear(2, 3), SimpleNamespace(unet=None), 7])
def test_other_objects_are_refused(other: Any) -> None:
    with pytest.raises(InputError, match="has no U-Net of diffusers with self-attention"):
        merge_in(other)
