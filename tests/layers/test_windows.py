"""Windowed attention: equal to full attention under a window mask, at the cost of the windows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.layers.attention import attend
from seq2see.layers.mask_patterns import window_mask
from seq2see.layers.masks import padding_mask
from seq2see.layers.scores import SCORES, dot
from seq2see.layers.windows import BLOCK, attend_window

B, H, K, KV = 2, 3, 4, 5  # mutually different, so that swapped axes fail
paths = pytest.mark.parametrize("need_weights", [True, False], ids=["open", "fused"])


def inputs(
    length: int, lead: tuple[int, ...] = (B, H), seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((length, K), (length, K), (length, KV))
    query, key, value = (
        torch.randn(*lead, *shape, dtype=torch.float64, generator=generator).requires_grad_()
        for shape in shapes
    )
    return query, key, value


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


def same(given: tuple[Tensor, Tensor, Tensor], ours: Tensor, expected: Tensor) -> None:
    """Equal outputs and, for any slope, equal gradients."""
    close(ours, expected)
    slope = torch.randn_like(expected)
    slopes = (torch.autograd.grad(output, given, slope) for output in (ours, expected))
    for left, right in zip(*slopes, strict=True):
        close(left, right)


def spread(weights: Tensor, reach: int) -> Tensor:
    """Weights by distance (..., S, 2 · reach + 1) as weights by place (..., S, S)."""
    length = weights.shape[-2]
    whole = weights.new_zeros(*weights.shape[:-1], length + 2 * reach)
    for t in range(length):
        whole[..., t, t : t + 2 * reach + 1] = weights[..., t, :]
    assert not whole[..., :reach].any() and not whole[..., length + reach :].any()
    return whole[..., reach : reach + length]


@paths
@settings(max_examples=25)
@given(
    length=st.one_of(
        st.integers(1, 9), st.integers(BLOCK - 1, BLOCK + 1), st.integers(1, 3 * BLOCK)
    ),
    reach=st.one_of(st.integers(0, 4), st.integers(0, 2 * BLOCK)),
    lead=st.sampled_from([(), (B,), (B, H)]),
)
def test_equals_the_whole_under_a_window_mask(
    need_weights: bool, length: int, reach: int, lead: tuple[int, ...]
) -> None:
    given = inputs(length, lead)
    expected, expected_weights = attend(*given, window_mask(length, reach))
    output, weights = attend_window(*given, reach, need_weights=need_weights)
    same(given, output, expected)
    if not need_weights:
        assert weights is None
        return
    assert weights is not None and expected_weights is not None
    assert weights.shape == (*lead, length, 2 * reach + 1)
    close(spread(weights, reach), expected_weights)


@paths
@pytest.mark.parametrize("length", [7, BLOCK + 8])
def test_padding_gets_no_attention_and_a_window_of_padding_gives_zeros(
    length: int, need_weights: bool
) -> None:
    ids = torch.ones(B, length, dtype=torch.long)
    ids[0, 3:] = 0
    mask = padding_mask(ids, pad=0)
    given = inputs(length)
    output, _ = attend_window(*given, 2, mask, need_weights=need_weights)
    same(given, output, attend(*given, window_mask(length, 2) & mask)[0])
    assert not output[0, :, 5:].any() and output[1].all()


def test_masks_broadcast() -> None:
    given = inputs(9)
    for shape in ((), (9,), (1, 9), (H, 1, 9), (B, 1, 1, 9), (B, H, 1, 1)):
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.6
        same(given, attend_window(*given, 2, mask)[0], attend(*given, window_mask(9, 2) & mask)[0])


@pytest.mark.parametrize("name", SCORES)
def test_any_score_also_one_for_each_head(name: str) -> None:
    score = SCORES[name](K, H)
    if isinstance(score, torch.nn.Module):
        score = score.double()
    given = inputs(BLOCK + 3)
    expected, _ = attend(*given, window_mask(BLOCK + 3, 4), score=score)
    same(given, attend_window(*given, 4, score=score)[0], expected)


def test_leads_broadcast() -> None:
    query, _, value = inputs(9)
    _, key, _ = inputs(9, lead=(H,))
    close(attend_window(query, key, value, 1)[0], attend(query, key, value, window_mask(9, 1))[0])


def test_reach_zero_attends_to_itself_alone_and_no_positions_work() -> None:
    query, key, value = inputs(5)
    output, weights = attend_window(query, key, value, 0, score=dot)
    close(output, value)
    assert weights is not None and torch.equal(weights, torch.ones_like(weights))
    output, weights = attend_window(query[..., :0, :], key[..., :0, :], value[..., :0, :], 3)
    assert output.shape == (B, H, 0, KV) and weights is not None and weights.shape == (B, H, 0, 7)


def test_the_cost_is_linear_in_the_length() -> None:
    counted: list[int] = []

    def counting(query: Tensor, key: Tensor) -> Tensor:
        scores = dot(query, key)
        counted.append(scores.numel())
        return scores

    for length in (512, 1024):
        attend_window(*inputs(length, lead=()), 40, score=counting)
    assert counted == [13 * 40 * 120, 26 * 40 * 120]  # blocks × query positions × keys


def test_wrong_calls_are_refused_in_one_line() -> None:
    query, key, value = inputs(7)
    with pytest.raises(ValueError, match=r"^reach \(-1\) must be at least 0$"):
        attend_window(query, key, value, -1)
    with pytest.raises(
        ValueError,
        match=r"^query has 5 positions and key 7; a window needs queries and keys of one sequence$",
    ):
        attend_window(query[..., :5, :], key, value, 1)
    with pytest.raises(ValueError, match=r"^key has 7 positions and value 5; they must be equal$"):
        attend_window(query, key, value[..., :5, :], 1)
    says = r"^mask has shape \(7, 7\); it must be the same for all queries: \(\.\.\., 1, S\)$"
    with pytest.raises(ValueError, match=says):
        attend_window(query, key, value, 1, torch.ones(7, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"^mask has shape \(6,\); it must broadcast to"):
        attend_window(query, key, value, 1, torch.ones(6, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"^mask has dtype torch\.float32; it must be bool"):
        attend_window(query, key, value, 1, torch.ones(7))
