"""Masks: True = may attend, and nothing else is let through."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.layers.masks import causal_mask, combine, padding_mask


def test_padding_mask_hides_padding_from_every_position_of_its_own_sentence() -> None:
    ids = torch.tensor([[5, 9, 4, 7], [9, 7, 7, 7], [7, 5, 7, 4]])
    mask = padding_mask(ids, pad=7)
    assert mask.dtype == torch.bool
    assert mask.shape == (3, 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [
        [True, True, True, False],
        [True, False, False, False],
        [False, True, False, True],
    ]


@settings(deadline=None)
@given(targets=st.integers(1, 9), more=st.integers(0, 6))
def test_causal_mask_lets_each_position_see_those_up_to_itself(targets: int, more: int) -> None:
    mask = causal_mask(targets, targets + more)
    assert mask.dtype == torch.bool
    for t in range(targets):
        assert mask[t].tolist() == [s <= t + more for s in range(targets + more)]


@settings(deadline=None)
@given(length=st.integers(1, 9), data=st.data())
def test_causal_mask_of_the_last_positions_is_the_end_of_the_whole_one(
    length: int, data: st.DataObject
) -> None:
    last = data.draw(st.integers(1, length))
    assert torch.equal(causal_mask(last, length), causal_mask(length)[-last:])


def test_causal_mask_needs_a_key_for_each_target() -> None:
    with pytest.raises(ValueError, match=r"^keys \(3\) must be at least targets \(4\)$"):
        causal_mask(4, 3)


def test_combine_of_nothing_allows_everything() -> None:
    assert combine() is None
    assert combine(None, None) is None


def test_combine_attends_where_every_mask_allows_it() -> None:
    padding = padding_mask(torch.tensor([[4, 4, 4], [4, 4, 2]]), pad=2)
    causal = causal_mask(3)
    window = causal_mask(3).T.roll(1, 0)
    for masks in ((padding, causal, window), (window, None, padding, causal)):
        combined = combine(*masks)
        assert combined is not None
        assert combined.shape == (2, 1, 3, 3)
        for b in range(2):
            for t in range(3):
                for s in range(3):
                    allowed = (
                        bool(padding[b, 0, 0, s]) and bool(causal[t, s]) and bool(window[t, s])
                    )
                    assert bool(combined[b, 0, t, s]) == allowed


def test_combine_leaves_its_masks_as_they_were() -> None:
    padding, causal = padding_mask(torch.tensor([[4, 2]]), pad=2), causal_mask(2)
    before = padding.clone(), causal.clone()
    combine(padding, causal)
    assert torch.equal(padding, before[0]) and torch.equal(causal, before[1])
