"""Token pruning: attention received, the tokens that stay, and learned thresholds."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.layers.reduction.merging import bipartite
from seq2see.layers.reduction.pruning import (
    importance,
    kept_share,
    prune_below,
    prune_to,
    soft_mask,
)

B, H, T, S, D = 3, 2, 5, 7, 4  # mutually different, so that swapped axes fail
examples = settings(max_examples=25, deadline=None)


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tokens(seed: int) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """x (B, S, D), scores (B, S) and which tokens are real or protected; the padding holds NaN."""
    real, protected = drawn(B, S, seed=seed) > 0.25, drawn(B, S, seed=seed + 1) < 0.2
    real[0] = True
    scores = drawn(B, S, seed=seed + 2).masked_fill(~real, torch.nan)
    x = drawn(B, S, D, seed=seed + 3).masked_fill(~real[..., None], torch.nan)
    return x, scores, {"real": real, "protected": protected}


def attention(real: Tensor, queries: int, seed: int) -> Tensor:
    """Weights (B, H, T, S) on real tokens, each row with sum 1."""
    weights = drawn(B, H, queries, S, seed=seed).masked_fill(~real[:, None, None], 0.0)
    return weights / weights.sum(-1, keepdim=True)


@examples
@given(seed=st.integers(0, 9999))
def test_importance_is_the_mean_attention_received(seed: int) -> None:
    real, queries = drawn(B, S, seed=seed) > 0.3, drawn(B, T, seed=seed + 1) > 0.3
    real[:, 0] = True
    queries[:, 0] = True
    weights = attention(real, T, seed).masked_fill(~queries[:, None, :, None], torch.nan)
    scores = importance(weights, real, queries)
    assert scores.shape == (B, S)
    for b in range(B):
        torch.testing.assert_close(
            scores[b], weights[b, :, queries[b]].flatten(0, 1).mean(0), rtol=0, atol=1e-12
        )
    torch.testing.assert_close(scores.sum(1), torch.ones(B).double(), rtol=0, atol=1e-12)
    itself = attention(real, S, seed)
    assert torch.equal(importance(itself, real), importance(itself, real, real))
    torch.testing.assert_close(importance(itself), itself.mean((1, 2)), rtol=0, atol=1e-12)
    assert not importance(itself, torch.zeros_like(real)).any()


@examples
@given(threshold=st.floats(0, 1.1), seed=st.integers(0, 9999))
def test_tokens_below_the_threshold_go(threshold: float, seed: int) -> None:
    x, scores, constraints = tokens(seed)
    reduction = prune_below(scores, threshold, **constraints)
    packed = reduction.merge(x)
    for b in range(B):
        present = [s for s in range(S) if constraints["real"][b, s]]
        kept = [s for s in present if constraints["protected"][b, s] or scores[b, s] >= threshold]
        if present and not kept:
            kept = [max(present, key=lambda s: float(scores[b, s]))]
        places = [kept.index(s) if s in kept else -1 for s in range(S)]
        if reduction.unchanged:
            places = [s if s in present else -1 for s in range(S)]
            assert kept == present
        assert reduction.source[b].tolist() == places
        assert torch.equal(packed[b][reduction.real[b]], x[b, kept])
        assert torch.equal(reduction.unmerge(packed)[b, kept], x[b, kept])
        assert int(reduction.sizes[b].sum()) == len(kept)
    if not reduction.unchanged:
        assert packed.shape == (B, int(reduction.source.max()) + 1, D)
        assert not packed[~reduction.real].any()


@examples
@given(top=st.integers(1, 9), seed=st.integers(0, 9999))
def test_the_most_important_tokens_stay(top: int, seed: int) -> None:
    x, scores, constraints = tokens(seed)
    reduction = prune_to(scores, top, **constraints)
    for b in range(B):
        present = [s for s in range(S) if constraints["real"][b, s]]
        free = sorted(
            (s for s in present if not constraints["protected"][b, s]),
            key=lambda s: -float(scores[b, s]),
        )
        always = [s for s in present if constraints["protected"][b, s]]
        kept = sorted(always + free[: max(0, top - len(always))])
        assert [s for s in range(S) if reduction.source[b, s] >= 0] == kept
        assert torch.equal(reduction.merge(x)[b][reduction.real[b]], x[b, kept])
    per_sentence = prune_to(scores, torch.full((B,), top), **constraints)
    assert torch.equal(per_sentence.source, reduction.source)


def test_each_sentence_may_keep_a_number_of_its_own() -> None:
    reduction = prune_to(drawn(B, S, seed=1), torch.tensor([1, 4, 2]))
    assert reduction.real.sum(1).tolist() == [1, 4, 2] and reduction.real.shape == (B, 4)


@examples
@given(seed=st.integers(0, 9999))
def test_a_threshold_of_zero_changes_nothing(seed: int) -> None:
    x, scores, constraints = tokens(seed)
    scores = scores.masked_fill(scores < 0.3, 0.0)
    for reduction in (prune_below(scores, 0.0, **constraints), prune_to(scores, S, **constraints)):
        assert reduction.unchanged and torch.equal(reduction.real, constraints["real"])
        torch.testing.assert_close(reduction.merge(x), x, rtol=0, atol=0, equal_nan=True)


@examples
@given(threshold=st.floats(0, 1.1), top=st.integers(1, 9), seed=st.integers(0, 9999))
def test_neither_companions_nor_padding_matter(threshold: float, top: int, seed: int) -> None:
    b, (_, scores, constraints), (_, other, others) = 1, tokens(seed), tokens(seed + 1)
    other[b] = scores[b].nan_to_num(9.0)
    for name, mask in constraints.items():
        others[name][b] = mask[b]
    below = prune_below(scores, threshold, **constraints), prune_below(other, threshold, **others)
    for here, there in (
        below,
        (prune_to(scores, top, **constraints), prune_to(other, top, **others)),
    ):
        assert torch.equal(here.source[b] >= 0, there.source[b] >= 0)
        if not here.unchanged and not there.unchanged:
            assert torch.equal(here.source[b], there.source[b])


@examples
@given(threshold=st.floats(0.05, 0.95), seed=st.integers(0, 9999))
def test_a_cold_soft_mask_is_the_hard_one(threshold: float, seed: int) -> None:
    _, scores, constraints = tokens(seed)
    mask = soft_mask(scores, threshold, 1e-9, **constraints)
    expected = constraints["real"] & (constraints["protected"] | (scores >= threshold))
    near = (scores - threshold).abs() < 1e-6
    assert torch.equal(mask[~near].round().bool(), expected[~near])
    share = kept_share(mask, constraints["real"])
    torch.testing.assert_close(share, mask[constraints["real"]].mean(), rtol=0, atol=1e-12)
    assert soft_mask(torch.tensor([[0.5]]), 0.5, 3.0).item() == 0.5


def test_gradients_are_those_of_finite_differences() -> None:
    real, protected = drawn(B, S, seed=2) > 0.3, drawn(B, S, seed=3) < 0.2
    threshold = torch.tensor(0.4).double().requires_grad_()

    def kept(scores: Tensor, threshold: Tensor) -> Tensor:
        return soft_mask(scores, threshold, 0.3, real=real, protected=protected)

    assert torch.autograd.gradcheck(kept, (drawn(B, S, seed=4).requires_grad_(), threshold))
    assert torch.autograd.gradcheck(
        lambda mask: kept_share(mask, real), drawn(B, S, seed=5).requires_grad_()
    )
    assert torch.autograd.gradcheck(
        lambda w: importance(w, real), drawn(B, H, S, S, seed=6).requires_grad_()
    )
    reduction = prune_below(drawn(B, S, seed=7), 0.6, real=real)
    assert torch.autograd.gradcheck(reduction.merge, drawn(B, S, D, seed=8).requires_grad_())


def test_garbage_in_the_padding_reaches_no_threshold() -> None:
    _, scores, constraints = tokens(9)
    threshold = torch.tensor(0.4).double().requires_grad_()
    share = kept_share(soft_mask(scores, threshold, 0.1, **constraints), constraints["real"])
    (slope,) = torch.autograd.grad(share, threshold)
    assert slope < 0  # a higher threshold keeps less
    assert prune_below(scores, threshold, **constraints).source.shape == (
        B,
        S,
    )  # and serves as it is


def test_pruning_follows_merging() -> None:
    x, scores, constraints = tokens(10)
    merged = bipartite(x, 2, **constraints)
    pruned = prune_to(merged.merge(scores.nan_to_num()), 3, real=merged.real, sizes=merged.sizes)
    both = merged.then(pruned)
    assert both.real.shape == (B, 3)
    torch.testing.assert_close(both.merge(x), pruned.merge(merged.merge(x)), rtol=0, atol=1e-12)
    assert torch.equal(both.sizes.sum(1), (both.source >= 0).sum(1).double())


def refused(line: str, call: Callable[..., object], *given: Any, **keys: Any) -> None:
    with pytest.raises(TypeError if "dtype" in line else ValueError, match=f"^{re.escape(line)}$"):
        call(*given, **keys)


def test_wrong_calls_of_importance_are_refused() -> None:
    weights = torch.ones(B, H, T, S)
    line = "weights has shape (2, 5, 7); it must be (batch, heads, queries, tokens)"
    refused(line, importance, weights[0])
    refused(
        "real has shape (3, 5); it must be (3, 7)", importance, weights, torch.ones(B, T).bool()
    )
    refused(
        "queries has shape (3, 7); it must be (3, 5)",
        importance,
        weights,
        None,
        torch.ones(B, S).bool(),
    )
    refused(
        "there are 5 queries for 7 tokens; queries must be given",
        importance,
        weights,
        torch.ones(B, S).bool(),
    )


def test_wrong_calls_of_pruning_are_refused() -> None:
    scores, line = torch.ones(B, S), "scores has shape (3, 7, 1); it must be (batch, length)"
    refused(line, prune_below, scores[..., None], 0.1)
    refused(line, prune_to, scores[..., None], 2)
    refused(line, soft_mask, scores[..., None], 0.1, 1.0)
    refused("threshold has shape (3,); it must be one number", prune_below, scores, torch.ones(B))
    refused("temperature (0) must be above 0", soft_mask, scores, 0.1, 0)
    refused(
        "top (0) must be a whole number of at least 1, or one for each of 3 sentences",
        prune_to,
        scores,
        0,
    )
    refused(
        "top (2.5) must be a whole number of at least 1, or one for each of 3 sentences",
        prune_to,
        scores,
        2.5,
    )
    refused(
        "top ([1, 2]) must be a whole number of at least 1, or one for each of 3 sentences",
        prune_to,
        scores,
        torch.tensor([1, 2]),
    )
    refused(
        "real has shape (3, 6); it must be (3, 7)",
        prune_to,
        scores,
        2,
        real=torch.ones(B, S - 1).bool(),
    )
    refused(
        "real has shape (3, 6); it must be (3, 7)", kept_share, scores, torch.ones(B, S - 1).bool()
    )
