"""Attention: the worked example, parity with torch, rows without an open key, and the heads."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.interop import attention_from_torch
from seq2see.layers.masks import causal_mask
from seq2see.layers.scores import dot, scaled_dot

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
B, H, T, S, K, KV = 2, 3, 5, 7, 4, 6  # mutually different, so that swapped axes fail
MASK_SHAPES = [
    (),
    (S,),
    (1, S),
    (T, 1),
    (T, S),
    (H, T, S),
    (B, 1, 1, S),
    (1, H, T, 1),
    (B, 1, T, S),
    (B, H, T, S),
]

paths = pytest.mark.parametrize("need_weights", [True, False], ids=["open", "fused"])
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def inputs(
    dtype: torch.dtype, seed: int = 0, lead: tuple[int, ...] = (B, H)
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((T, K), (S, K), (S, KV))
    query, key, value = (
        torch.randn(*lead, *shape, dtype=dtype, generator=generator).requires_grad_()
        for shape in shapes
    )
    return query, key, value


def test_worked_example() -> None:
    x = torch.tensor([[1.0, 3.0, 2.0], [1.0, 1.0, 3.0], [1.0, 2.0, 1.0]])
    output, weights = attend(x, x, x, score=dot)
    expected = torch.tensor(
        [[1, 2.957691, 2.011295], [1, 1.540148, 2.722573], [1, 2.864164, 2.000000]]
    )
    close(output, expected, 1e-6)
    assert weights is not None
    close(weights @ x, expected, 1e-6)


@types
@pytest.mark.parametrize("masked", [None, *MASK_SHAPES], ids=str)
@pytest.mark.parametrize("biased", [None, (S,), (H, T, S), (B, 1, 1, S)], ids=str)
def test_open_path_fused_path_and_torch_agree(
    dtype: torch.dtype, masked: tuple[int, ...] | None, biased: tuple[int, ...] | None
) -> None:
    generator = torch.Generator().manual_seed(5)
    query, key, value = inputs(dtype)
    mask = None if masked is None else torch.rand(masked, generator=generator) < 0.6
    bias = None if biased is None else torch.randn(biased, dtype=dtype, generator=generator)
    additive = (
        torch.zeros(B, H, T, S, dtype=dtype) if bias is None else bias.expand(B, H, T, S).clone()
    )
    if mask is not None:
        additive = additive.masked_fill(~mask, float("-inf"))
    expected = functional.scaled_dot_product_attention(query, key, value, additive)
    slopes = torch.randn(B, H, T, KV, dtype=dtype, generator=generator)
    expected_gradients = torch.autograd.grad(expected, (query, key, value), slopes)
    for need_weights in (True, False):
        output, weights = attend(query, key, value, mask, bias=bias, need_weights=need_weights)
        assert (weights is not None) == need_weights
        assert output.shape == (B, H, T, KV)
        close(output, expected, TOLERANCE[dtype])
        gradients = torch.autograd.grad(output, (query, key, value), slopes)
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            close(gradient, expected_gradient, 10 * TOLERANCE[dtype])


@settings(max_examples=40, deadline=None)
@given(
    lead=st.lists(st.integers(1, 3), max_size=3),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5)),
    chance=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_paths_agree_at_any_shape(
    lead: list[int], sizes: tuple[int, int, int, int], chance: float, seed: int
) -> None:
    targets, sources, inner, outer = sizes
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(*lead, *shape, dtype=torch.float64, generator=generator)
        for shape in ((targets, inner), (sources, inner), (sources, outer))
    )
    mask = torch.rand(*lead, targets, sources, generator=generator) < chance
    output, weights = attend(query, key, value, mask)
    fused, nothing = attend(query, key, value, mask, need_weights=False)
    assert weights is not None and nothing is None
    close(fused, output, 1e-12)
    close(weights @ value, output, 1e-12)
    assert not weights[~mask].any()
    close(weights.sum(-1), mask.any(-1).double(), 1e-12)


def test_paths_agree_on_long_sentences_whose_beginning_is_hidden() -> None:
    """Fused kernels process keys in blocks; a first one without open keys must change nothing."""
    query, key, value = (torch.randn(2, length, 8) for length in (3, 1300, 1300))
    mask = torch.arange(1300) >= 700
    close(
        attend(query, key, value, mask)[0],
        attend(query, key, value, mask, need_weights=False)[0],
        1e-5,
    )


@types
@paths
@pytest.mark.parametrize("closed_by", ["mask", "mask and bias", "bias", "garbage"])
def test_a_row_with_nothing_to_attend_to_is_zero_in_both_directions(
    dtype: torch.dtype, need_weights: bool, closed_by: str
) -> None:
    query, key, value = inputs(dtype)
    mask = torch.rand(B, 1, T, S, generator=torch.Generator().manual_seed(1)) < 0.7
    mask[:, :, :, 0] = True
    mask[0, :, 2] = mask[1, :, 4] = False
    bias = None
    if "bias" in closed_by:
        bias = torch.randn(B, 1, T, S, dtype=dtype)
        if closed_by == "bias":
            bias, mask = bias.masked_fill(~mask, float("-inf")), mask | True
        bias.requires_grad_()
    if closed_by == "garbage":
        mask[:, :, :, 5:] = False
        with torch.no_grad():
            for tensor in (key, value):
                tensor[:, :, 5:] = 1e15
    output, weights = attend(query, key, value, mask, bias=bias, need_weights=need_weights)
    given = [tensor for tensor in (query, key, value, bias) if tensor is not None]
    gradients = torch.autograd.grad(output.square().sum(), given)
    for tensor in (output, gradients[0]):
        assert not tensor[0, :, 2].any() and not tensor[1, :, 4].any()
        assert tensor[0, :, 0].any()
    for tensor in (output, *gradients):
        assert tensor.isfinite().all()
    if closed_by == "garbage":
        assert not gradients[1][:, :, 5:].any() and not gradients[2][:, :, 5:].any()
    if weights is not None:
        rows = weights.sum(-1)
        assert not rows[0, :, 2].any() and not rows[1, :, 4].any()
        close(rows[:, :, [0, 1, 3]], torch.ones(B, H, 3, dtype=dtype), 1e-6)


@paths
def test_hidden_keys_and_values_change_no_bit(need_weights: bool) -> None:
    query, key, value = (tensor.detach() for tensor in inputs(torch.float32))
    mask = torch.arange(S) < 5
    before, _ = attend(query, key, value, mask, need_weights=need_weights)
    key[:, :, 5:], value[:, :, 5:] = 1e4, -1e4
    after, _ = attend(query, key, value, mask, need_weights=need_weights)
    assert torch.equal(before, after)


def test_weights_are_those_before_dropout() -> None:
    query, key, value = inputs(torch.float64)
    quiet, expected = attend(query, key, value)
    torch.manual_seed(0)
    noisy, weights = attend(query, key, value, dropout=0.5)
    assert weights is not None and expected is not None
    assert torch.equal(weights, expected)
    assert (noisy - quiet).abs().max() > 0.1


def test_dropout_keeps_the_mean_and_acts_without_weights_too() -> None:
    query, key, value = (tensor.detach() for tensor in inputs(torch.float64, lead=()))
    expected, _ = attend(query, key, value)
    torch.manual_seed(0)
    many = query.expand(4000, T, K)
    noisy, weights = attend(many, key, value, dropout=0.3, need_weights=False)
    assert weights is None
    assert not torch.equal(noisy[0], noisy[1])
    close(noisy.mean(0), expected, 0.1)


def test_another_score_is_used_on_both_paths() -> None:
    query, key, value = (tensor.detach() for tensor in inputs(torch.float64))
    expected = (dot(query, key)).softmax(-1) @ value
    for need_weights in (True, False):
        close(attend(query, key, value, score=dot, need_weights=need_weights)[0], expected, 1e-12)
    assert (attend(query, key, value, score=scaled_dot)[0] - expected).abs().max() > 1e-3


@paths
def test_wrong_calls_are_refused_in_one_line(need_weights: bool) -> None:
    query, key, value = inputs(torch.float32)
    call: Any = {"need_weights": need_weights}
    with pytest.raises(
        TypeError, match=r"^mask has dtype torch.float32; it must be bool, True = may attend$"
    ):
        attend(query, key, value, torch.zeros(T, S), **call)
    with pytest.raises(ValueError, match=r"^key has 7 positions and value 6; they must be equal$"):
        attend(query, key, value[:, :, 1:], **call)
    for shape in ((T, S + 1), (S, T), (4, B, H, T, S)):
        with pytest.raises(
            ValueError, match=r"^mask has shape \(.*\); it must broadcast to .* = \(2, 3, 5, 7\)$"
        ):
            attend(query, key, value, torch.ones(shape, dtype=torch.bool), **call)
        with pytest.raises(
            ValueError, match=r"^bias has shape \(.*\); it must broadcast to .* = \(2, 3, 5, 7\)$"
        ):
            attend(query, key, value, bias=torch.ones(shape), **call)


WIDTH, HEADS = 12, 3


def heads_and_torch() -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    torch.manual_seed(2)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).double()
    with torch.no_grad():
        assert theirs.in_proj_bias is not None
        theirs.in_proj_bias.normal_()
        theirs.out_proj.bias.normal_()
    return attention_from_torch(theirs), theirs


def test_self_attention_agrees_with_torch() -> None:
    ours, theirs = heads_and_torch()
    x = torch.randn(B, T, WIDTH, dtype=torch.float64)
    mask = causal_mask(T)
    output, weights = ours(x, x, x, mask, need_weights=True)
    expected, expected_weights = theirs(x, x, x, attn_mask=~mask, average_attn_weights=False)
    close(output, expected, 1e-12)
    assert weights.shape == (B, HEADS, T, T)
    close(weights, expected_weights, 1e-12)


def test_cross_attention_agrees_with_torch() -> None:
    ours, theirs = heads_and_torch()
    query = torch.randn(B, T, WIDTH, dtype=torch.float64)
    key, value = torch.randn(2, B, S, WIDTH, dtype=torch.float64)
    real = torch.tensor([[True] * 4 + [False] * 3, [True] * 6 + [False]])
    output, weights = ours(query, key, value, real[:, None, None], need_weights=True)
    expected, expected_weights = theirs(
        query, key, value, key_padding_mask=~real, average_attn_weights=False
    )
    close(output, expected, 1e-12)
    assert weights.shape == (B, HEADS, T, S)
    close(weights, expected_weights, 1e-12)


def test_heads_together_equal_heads_one_by_one() -> None:
    ours, _ = heads_and_torch()
    query = torch.randn(B, T, WIDTH, dtype=torch.float64)
    memory = torch.randn(B, S, WIDTH, dtype=torch.float64)
    mask = torch.arange(S) < 5
    output, weights = ours(query, memory, memory, mask, need_weights=True)
    size = WIDTH // HEADS
    outputs = []
    for head in range(HEADS):
        rows = slice(head * size, (head + 1) * size)
        q, k, v = (
            functional.linear(x, part.weight[rows], part.bias[rows])
            for x, part in ((query, ours.query), (memory, ours.key), (memory, ours.value))
        )
        one, one_weights = attend(q, k, v, mask)
        assert one_weights is not None
        close(weights[:, head], one_weights, 1e-12)
        outputs.append(one)
    close(output, ours.output(torch.cat(outputs, -1)), 1e-12)


def test_attending_to_projected_keys_and_values_equals_forward() -> None:
    ours, _ = heads_and_torch()
    query = torch.randn(B, T, WIDTH, dtype=torch.float64)
    key, value = torch.randn(2, B, S, WIDTH, dtype=torch.float64)
    mask = torch.tensor([[True] * 4 + [False] * 3, [True] * 6 + [False]])[:, None, None]
    bias = torch.randn(B, 1, 1, S, dtype=torch.float64)
    memory = replace(ours.project(key, value), mask=mask, bias=bias)
    assert memory.keys.shape == memory.values.shape == (B, HEADS, S, WIDTH // HEADS)
    whole, weights = ours(query, key, value, mask, bias=bias)
    assert weights is None
    assert torch.equal(ours(query, memory)[0], whole)
    steps = [ours(query[:, t : t + 1], memory)[0] for t in range(T)]
    close(torch.cat(steps, 1), whole, 1e-12)


@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_collects_keys_and_values_step_by_step(rotary: bool) -> None:
    layer = MultiHeadAttention(WIDTH, HEADS, rotary=rotary).double()
    x = torch.randn(B, T, WIDTH, dtype=torch.float64)
    whole, _ = layer(x, x, x, causal_mask(T))
    cache = layer.project(x[:, :0], x[:, :0])
    first, _ = layer(x[:, :2], x[:, :2], mask=causal_mask(2), cache=cache)
    second, _ = layer(x[:, 2:], x[:, 2:], mask=causal_mask(T - 2, T), cache=cache)
    close(torch.cat([first, second], 1), whole, 1e-12)
    expected = layer.project(x, x)
    close(cache.keys, expected.keys, 1e-12)
    close(cache.values, expected.values, 1e-12)


def test_attention_dropout_acts_in_training_alone() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(WIDTH, HEADS, dropout=0.5)
    x = torch.randn(B, T, WIDTH)
    assert not torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    layer.eval()
    assert torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])


def test_width_must_be_divisible_by_heads() -> None:
    with pytest.raises(ValueError, match=r"^width \(12\) must be divisible by heads \(5\)$"):
        MultiHeadAttention(12, 5)


def test_attention_goes_through_the_transforms_of_torch_func() -> None:
    """With gradients enabled nothing is written in place, so vmap and forward mode work."""
    x = torch.randn(3, 2, 4, 5, dtype=torch.float64)
    mask = torch.ones(4, 4, dtype=torch.bool).tril()

    def attended(x: Tensor) -> Tensor:
        return attend(x, x, x, mask)[0]

    torch.testing.assert_close(torch.vmap(attended)(x), attended(x))
    _, slope = torch.func.jvp(attended, (x,), (torch.ones_like(x),))
    step = 1e-6
    difference = (attended(x + step) - attended(x - step)) / (2 * step)
    torch.testing.assert_close(slope, difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_without_gradients_the_weights_are_the_same(empty: bool, biased: bool) -> None:
    query, key, value = (
        torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(i)) for i in range(3)
    )
    mask = torch.tensor(
        [[True, True, False, True, False], [not empty, False, False, False, False]]
    )[:, None, None]
    bias = torch.randn(1, 3, 5, 5).masked_fill(torch.eye(5) > 0, float("-inf")) if biased else None
    expected = attend(query, key, value, mask, bias=bias)
    with torch.inference_mode():
        output, weights = attend(query, key, value, mask, bias=bias)
    assert torch.equal(output, expected[0])
    assert weights is not None and expected[1] is not None and torch.equal(weights, expected[1])
    assert bool((output[1] == 0).all()) == empty


@paths
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_result_of_a_users_own_score_is_not_overwritten(
    mode: Any, masked: bool, biased: bool, need_weights: bool
) -> None:
    query, key, value = (tensor.detach() for tensor in inputs(torch.float64))
    stored = torch.randn(B, H, T, S, dtype=torch.float64)
    before = stored.clone()
    mask = torch.arange(S) < 5 if masked else None
    bias = torch.randn(T, S, dtype=torch.float64) if biased else None
    scores = before if bias is None else before + bias
    scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    for score in (lambda query, key: stored, lambda query, key: stored.view(B, H, T, S)):
        with mode():
            output, _ = attend(
                query, key, value, mask, bias=bias, score=score, need_weights=need_weights
            )
        assert torch.equal(stored, before)
        close(output, scores.softmax(-1) @ value, 1e-12)


def test_the_fused_kernel_computes_in_float32_under_autocast() -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 3, 5, 8, generator=generator).bfloat16() for _ in range(3))
    exact, _ = attend(q.float(), k.float(), v.float(), need_weights=False)
    with torch.autocast("cpu", torch.bfloat16):
        output, _ = attend(q, k, v, need_weights=False)
    assert torch.equal(output, exact)
