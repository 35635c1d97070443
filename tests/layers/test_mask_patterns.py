"""Mask patterns: windows, prefixes, any order, and several sentences in one row."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.layers.mask_patterns import order_mask, packed_mask, prefix_mask, window_mask
from seq2see.layers.masks import causal_mask, combine


@settings(deadline=None)
@given(targets=st.integers(1, 9), more=st.integers(0, 6), reach=st.integers(0, 12))
def test_window_mask_lets_each_position_see_its_neighbours(
    targets: int, more: int, reach: int
) -> None:
    mask = window_mask(targets, reach, targets + more)
    assert mask.dtype == torch.bool
    for t in range(targets):
        assert mask[t].tolist() == [abs(t + more - s) <= reach for s in range(targets + more)]


@settings(deadline=None)
@given(length=st.integers(1, 9), data=st.data())
def test_prefix_mask_is_open_to_the_prefix_and_causal_after_it(
    length: int, data: st.DataObject
) -> None:
    prefix = data.draw(st.integers(0, length))
    mask = prefix_mask(prefix, length)
    assert mask.tolist() == [[s < prefix or s <= t for s in range(length)] for t in range(length)]


@pytest.mark.parametrize("prefix", [-1, 4])
def test_a_prefix_fits_into_its_sequence(prefix: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^prefix \({prefix}\) must be between 0 and length \(3\)$"
    ):
        prefix_mask(prefix, 3)


@settings(deadline=None)
@given(order=st.permutations(range(6)))
def test_order_mask_is_causal_in_that_order(order: list[int]) -> None:
    mask = order_mask(torch.tensor(order))
    for i, position in enumerate(order):
        assert {s for s in range(6) if mask[position, s]} == set(order[: i + 1])


def test_order_mask_of_the_usual_order_is_the_causal_one() -> None:
    assert torch.equal(order_mask(torch.arange(5)), causal_mask(5))


@pytest.mark.parametrize("order", [[0, 0, 1], [1, 2, 3], [2, 0]])
def test_an_order_holds_each_position_once(order: list[int]) -> None:
    with pytest.raises(ValueError, match="must hold each of 0 … "):
        order_mask(torch.tensor(order))


def test_packed_mask_keeps_sentences_apart() -> None:
    mask = packed_mask(torch.tensor([[0, 0, 1, 1, 1], [3, 3, 3, 3, 7]]))
    assert mask.shape == (2, 1, 5, 5) and mask.dtype == torch.bool
    blocks = [
        torch.block_diag(torch.ones(2, 2), torch.ones(3, 3)),
        torch.block_diag(torch.ones(4, 4), torch.ones(1, 1)),
    ]
    assert torch.equal(mask[:, 0], torch.stack(blocks).bool())


def test_a_packed_and_causal_mask_is_each_sentence_s_own_causal_one() -> None:
    combined = combine(packed_mask(torch.tensor([[0, 0, 1, 1, 1]])), causal_mask(5))
    assert combined is not None
    assert torch.equal(combined[0, 0], torch.block_diag(causal_mask(2), causal_mask(3)).bool())
