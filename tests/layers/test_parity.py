"""Attention and layers against the same computed by hand and by torch.nn."""

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.interop import (
    attention_from_torch,
    decoder_layer_from_torch,
    encoder_layer_from_torch,
    encoder_layer_to_torch,
    mask_from_torch,
)
from seq2see.layers.masks import causal_mask
from seq2see.layers.scores import dot

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
INF = float("inf")

types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
norms = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def shaken(module: Any, scale: float = 0.1) -> Any:
    """Biases and norms start at 0 and 1, where a forgotten or swapped one would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=scale)
    return module


# By hand


def test_cross_attention_over_a_second_matrix() -> None:
    x = [[1.0, 3.0, 2.0], [1.0, 1.0, 3.0], [1.0, 2.0, 1.0]]
    y = [[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    output, weights = attend(torch.tensor(x), torch.tensor(y), torch.tensor(y), score=dot)
    assert weights is not None and weights.shape == (3, 2)
    for t, query in enumerate(x):
        powers = [math.exp(sum(q * k for q, k in zip(query, key, strict=True))) for key in y]
        shares = [power / sum(powers) for power in powers]
        assert weights[t].tolist() == pytest.approx(shares, abs=1e-6)
        for i in range(3):
            expected = sum(share * value[i] for share, value in zip(shares, y, strict=True))
            assert float(output[t, i]) == pytest.approx(expected, abs=1e-6)
    # The products are 4 and 5, 5 and 4, 3 and 3.
    close(weights[:, 0], torch.tensor([0.268941, 0.731059, 0.5]), 1e-6)


def test_the_causal_table_of_four_tokens_and_its_weights_row_by_row() -> None:
    table = causal_mask(4)
    assert table.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    _, weights = attend(torch.zeros(4, 3), torch.zeros(4, 3), torch.zeros(4, 3), table)
    assert weights is not None
    even = [
        [1, 0, 0, 0],
        [1 / 2, 1 / 2, 0, 0],
        [1 / 3, 1 / 3, 1 / 3, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4],
    ]
    close(weights, torch.tensor(even), 1e-6)
    query, key, value = torch.randn(3, 4, 3, dtype=torch.float64)
    output, weights = attend(query, key, value, table)
    assert weights is not None
    for t in range(4):  # each row is the softmax over what it may see, as if there were no more
        row, row_weights = attend(query[t : t + 1], key[: t + 1], value[: t + 1])
        assert row_weights is not None
        close(weights[t, : t + 1], row_weights[0], 1e-12)
        assert not weights[t, t + 1 :].any()
        close(output[t], row[0], 1e-12)


def test_eight_heads_of_64_from_512_and_back() -> None:
    layer = MultiHeadAttention(512, 8)
    with torch.no_grad():  # projections that change nothing
        for part in (layer.query, layer.key, layer.value, layer.output):
            nn.init.eye_(part.weight)
            nn.init.zeros_(part.bias)
    x = torch.randn(2, 5, 512)
    projected = layer.project(x, x)
    assert projected.keys.shape == projected.values.shape == (2, 8, 5, 64)
    for head in range(8):
        close(projected.keys[:, head], x[:, :, 64 * head : 64 * (head + 1)], 1e-5)
    itself = torch.eye(5).bool()
    output, weights = layer(x, x, x, itself, need_weights=True)
    assert weights.shape == (2, 8, 5, 5)
    assert output.shape == (2, 5, 512)
    close(output, x, 1e-5)


# torch.nn


def hiding(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> Tensor | None:
    """A mask for torch that leaves the first key open: without any open key torch returns NaN."""
    if kind == "none":
        return None
    hidden = torch.rand(shape) < 0.4
    hidden[..., 0] = False
    numbers = (
        torch.randn(shape, dtype=dtype) if kind == "added" else torch.zeros(shape, dtype=dtype)
    )
    return hidden if kind == "bool" else numbers.masked_fill(hidden, -INF)


KINDS = st.sampled_from(["none", "bool", "hiding", "added"])


@settings(max_examples=150)
@given(
    sizes=st.tuples(
        st.integers(1, 3),
        st.integers(1, 6),
        st.integers(1, 7),
        st.integers(1, 4),
        st.integers(1, 6),
    ),
    widths=st.tuples(st.none() | st.integers(1, 9), st.none() | st.integers(1, 9)),
    to_itself=st.booleans(),
    bias=st.booleans(),
    batch_first=st.booleans(),
    kinds=st.tuples(KINDS, KINDS),
    per_head=st.booleans(),
    weights=st.sampled_from(["none", "averaged", "per head"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    gradients=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_attention_agrees_with_torch(
    sizes: tuple[int, int, int, int, int],
    widths: tuple[int | None, int | None],
    to_itself: bool,
    bias: bool,
    batch_first: bool,
    kinds: tuple[str, str],
    per_head: bool,
    weights: str,
    dtype: torch.dtype,
    gradients: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    batch, targets, sources, heads, size = sizes
    if to_itself:
        sources, widths = targets, (None, None)
    keys: dict[str, Any] = {
        "kdim": widths[0],
        "vdim": widths[1],
        "bias": bias,
        "batch_first": batch_first,
    }
    theirs = shaken(nn.MultiheadAttention(heads * size, heads, **keys)).to(dtype).eval()
    ours = attention_from_torch(theirs)
    query = torch.randn(batch, targets, heads * size, dtype=dtype, requires_grad=True)
    key = (
        query
        if to_itself
        else torch.randn(batch, sources, theirs.kdim, dtype=dtype, requires_grad=True)
    )
    value = (
        query
        if to_itself
        else torch.randn(batch, sources, theirs.vdim, dtype=dtype, requires_grad=True)
    )
    attn_mask = hiding((batch * heads if per_head else 1, targets, sources), kinds[0], dtype)
    attn_mask = attn_mask[0] if attn_mask is not None and not per_head else attn_mask
    padding = hiding((batch, sources), kinds[1], dtype)

    given_to_them = (
        [query, key, value] if batch_first else [x.transpose(0, 1) for x in (query, key, value)]
    )
    if to_itself:
        given_to_them = [given_to_them[0]] * 3
    need_weights = weights != "none"
    # Without gradients torch takes a fast path of its own.
    with torch.set_grad_enabled(gradients), warnings.catch_warnings():
        # It warns of one bool and one float mask, but computes the right result.
        warnings.filterwarnings("ignore", "Support for mismatched")
        expected, expected_weights = theirs(
            *given_to_them,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            need_weights=need_weights,
            average_attn_weights=weights == "averaged",
        )
        mask, added = mask_from_torch(attn_mask, padding, heads=heads)
        output, own_weights = ours(query, key, value, mask, bias=added, need_weights=need_weights)
    expected = expected if batch_first else expected.transpose(0, 1)
    close(output, expected, TOLERANCE[dtype])
    assert (own_weights is not None) == (expected_weights is not None) == need_weights
    if own_weights is not None:
        close(
            own_weights.mean(1) if weights == "averaged" else own_weights,
            expected_weights,
            TOLERANCE[dtype],
        )
    if gradients:
        inputs = [query] if to_itself else [query, key, value]
        slopes = torch.randn_like(output) / output.numel()
        for left, right in zip(
            torch.autograd.grad(output, [*inputs, ours.output.weight], slopes),
            torch.autograd.grad(expected, [*inputs, theirs.out_proj.weight], slopes),
            strict=True,
        ):
            close(left, right, TOLERANCE[dtype])


def test_where_nothing_is_left_to_see_theirs_is_nan_and_ours_the_bias() -> None:
    theirs = shaken(nn.MultiheadAttention(12, 3, batch_first=True)).eval()
    ours = attention_from_torch(theirs)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    hidden = torch.rand(5, 7) < 0.3
    hidden[:, 0], hidden[3] = False, True
    expected, expected_weights = theirs(
        x, memory, memory, attn_mask=hidden, average_attn_weights=False
    )
    mask, _ = mask_from_torch(hidden, heads=3)
    output, weights = ours(x, memory, memory, mask, need_weights=True)
    assert expected[:, 3].isnan().all() and expected_weights[:, :, 3].isnan().all()
    close(output[:, 3], ours.output.bias.expand(2, 12), 1e-6)
    assert not weights[:, :, 3].any()
    rest = [0, 1, 2, 4]
    close(output[:, rest], expected[:, rest], 1e-5)
    close(weights[:, :, rest], expected_weights[:, :, rest], 1e-5)


class Case(NamedTuple):
    """Sizes and options of a layer, its masks and its mode."""

    sizes: tuple[int, int, int, int, int]  # batch, targets, sources, heads, head size
    inner: int
    bias: bool
    eps: float
    batch_first: bool
    kinds: tuple[str, str]
    gradients: bool
    seed: int

    def layer(self, kind: Any, norm_first: bool, dtype: torch.dtype) -> Any:
        """A layer of torch with random weights."""
        torch.manual_seed(self.seed)
        _, _, _, heads, size = self.sizes
        layer = kind(
            heads * size,
            heads,
            self.inner,
            bias=self.bias,
            layer_norm_eps=self.eps,
            batch_first=self.batch_first,
            norm_first=norm_first,
        )
        return shaken(layer).to(dtype).eval()

    def order(self, x: Tensor) -> Tensor:
        """Exchange batch and length where torch's layer wants it."""
        return x if self.batch_first else x.transpose(0, 1)


SIZES = [st.integers(1, 3), st.integers(1, 6), st.integers(1, 7), st.integers(1, 4)]
MASKS = st.sampled_from(["none", "bool", "hiding"])
CASES = st.builds(
    Case,
    sizes=st.tuples(*SIZES, st.integers(2, 6)),
    inner=st.integers(1, 9),
    bias=st.booleans(),
    eps=st.sampled_from([1e-5, 1e-3]),
    batch_first=st.booleans(),
    kinds=st.tuples(MASKS, MASKS),
    gradients=st.booleans(),
    seed=st.integers(0, 9999),
)


@types
@norms
@settings(max_examples=25)
@given(case=CASES)
def test_an_encoder_layer_agrees_with_torch(
    norm_first: bool, dtype: torch.dtype, case: Case
) -> None:
    theirs = case.layer(nn.TransformerEncoderLayer, norm_first, dtype)
    ours = encoder_layer_from_torch(theirs)
    batch, length, _, heads, size = case.sizes
    x = torch.randn(batch, length, heads * size, dtype=dtype)
    attn_mask = hiding((length, length), case.kinds[0], dtype)
    padding = hiding((batch, length), case.kinds[1], dtype)
    with torch.set_grad_enabled(case.gradients), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Support for mismatched")
        expected = case.order(theirs(case.order(x), attn_mask, padding))
        output = ours(x, mask_from_torch(attn_mask, padding, heads=heads)[0])
        close(output, expected, TOLERANCE[dtype])
        close(encoder_layer_to_torch(ours)(x, attn_mask, padding), output, TOLERANCE[dtype])


@types
@norms
@settings(max_examples=25)
@given(case=CASES)
def test_a_decoder_layer_agrees_with_torch(
    norm_first: bool, dtype: torch.dtype, case: Case
) -> None:
    theirs = case.layer(nn.TransformerDecoderLayer, norm_first, dtype)
    ours = decoder_layer_from_torch(theirs)
    batch, targets, sources, heads, size = case.sizes
    x = torch.randn(batch, targets, heads * size, dtype=dtype)
    memory = torch.randn(batch, sources, heads * size, dtype=dtype)
    future = ~causal_mask(targets)
    padding = hiding((batch, targets), case.kinds[0], dtype)
    memory_hidden = hiding((batch * heads, targets, sources), case.kinds[0], dtype)
    memory_padding = hiding((batch, sources), case.kinds[1], dtype)
    with torch.set_grad_enabled(case.gradients), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Support for mismatched")
        inputs = case.order(x), case.order(memory)
        expected = case.order(theirs(*inputs, future, memory_hidden, padding, memory_padding))
        mask, _ = mask_from_torch(future, padding, heads=heads)
        memory_mask, _ = mask_from_torch(memory_hidden, memory_padding, heads=heads)
        pair = replace(ours.cross_attention.project(memory, memory), mask=memory_mask)
        close(ours(x, pair, mask), expected, TOLERANCE[dtype])
