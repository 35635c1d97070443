"""Token merging: against plain loops, invariants of what is merged, and the way back."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from seq2see.layers.attention import attend
from seq2see.layers.reduction.merging import bipartite, grid, neighbours, schedule, size_bias
from seq2see.layers.reduction.reduction import Reduction

B, S, D, H, K = 3, 12, 5, 2, 4  # mutually different, so that swapped axes fail
HEIGHT, WIDTH = 3, 4
Matching = Callable[..., Reduction]
MATCHINGS: dict[str, Matching] = {
    "bipartite": bipartite,
    "grid": partial(grid, shape=(HEIGHT, WIDTH)),
    "neighbours": neighbours,
}
matchings = pytest.mark.parametrize("name", list(MATCHINGS))
examples = settings(max_examples=25, deadline=None)


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def masks(seed: int) -> tuple[Tensor, Tensor]:
    """Padding and protected tokens anywhere, but in the first sentence neither."""
    drawn = torch.rand(2, B, S, generator=torch.Generator().manual_seed(seed))
    drawn[:, 0] = 1.0
    return drawn[0] > 0.25, drawn[1] < 0.15


def tokens(seed: int) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """x (B, S, D), key (B, S, K) and constraints of a matching; the padding holds NaN."""
    real, protected = masks(seed)
    sizes = torch.randint(1, 5, (B, S), generator=torch.Generator().manual_seed(seed)).double()
    x, key = (
        random(B, S, size, seed=seed + size).masked_fill(~real[..., None], torch.nan)
        for size in (D, K)
    )
    return x, key, {"real": real, "protected": protected, "sizes": sizes}


def plain(name: str, key: Tensor, r: int, real: Tensor, protected: Tensor) -> list[int]:
    """The place of each token of one sentence, found by loops."""
    present = [s for s in range(len(key)) if real[s]]
    free = [s for s in present if not protected[s]]
    if name == "bipartite":
        joined = free[::2]
    elif name == "grid":  # cells of two by two; the last row fills none
        joined = [s for s in free if s // WIDTH == 0 and s % WIDTH % 2 == 0]
    if name == "neighbours":
        edges = [(right, left) for left, right in pairwise(present) if {left, right} <= {*free}]
    else:
        sources = [s for s in free if s not in joined]
        edges = [(s, max(joined, key=lambda t: alike(key, s, t))) for s in sources if joined]
    goes: dict[int, int] = {}
    for source, target in sorted(edges, key=lambda edge: -alike(key, *edge)):
        overlaps = name == "neighbours" and {source, target} & {*goes, *goes.values()}
        if len(goes) < r and not overlaps:
            goes[source] = target
    left = [s for s in present if s not in goes]
    return [left.index(goes.get(s, s)) if s in present else -1 for s in range(len(key))]


def alike(key: Tensor, s: int, t: int) -> float:
    return float(functional.cosine_similarity(key[s], key[t], dim=0))


@matchings
@examples
@given(r=st.integers(1, 9), seed=st.integers(0, 9999))
def test_plain_loops_agree(name: str, r: int, seed: int) -> None:
    _, key, constraints = tokens(seed)
    reduction = MATCHINGS[name](key, r, **constraints)
    for b in range(B):
        expected = plain(name, key[b], r, constraints["real"][b], constraints["protected"][b])
        assert reduction.source[b].tolist() == expected
        assert int(reduction.real[b].sum()) == max(expected) + 1
    assert reduction.real.shape[1] == int(reduction.source.max()) + 1  # not a place too many


@matchings
def test_a_full_batch_loses_r_tokens(name: str) -> None:
    r = 2  # greedy neighbours may find no more than a third of the tokens
    reduction = MATCHINGS[name](random(B, S, K, seed=1), r)
    assert reduction.real.all() and reduction.merge(random(B, S, D, seed=2)).shape == (B, S - r, D)


@matchings
@examples
@given(seed=st.integers(0, 9999))
def test_no_merging_changes_nothing(name: str, seed: int) -> None:
    x, key, constraints = tokens(seed)
    reduction = MATCHINGS[name](key, 0, **constraints)
    assert reduction.unchanged
    for given_ in (x, x.nan_to_num(7.0)):
        for passed in (reduction.merge(given_), reduction.unmerge(given_), reduction.sum(given_)):
            torch.testing.assert_close(passed, given_, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(reduction.real, constraints["real"])
    assert torch.equal(reduction.sizes, constraints["sizes"] * constraints["real"])
    assert torch.equal(reduction.any(constraints["protected"]), constraints["protected"])
    weights = random(B, H, D, S, seed=seed)
    assert torch.equal(reduction.spread(weights), weights)
    assert torch.equal(
        reduction.source, torch.arange(S).expand(B, S).masked_fill(~constraints["real"], -1)
    )


@matchings
@examples
@given(r=st.integers(1, 9), seed=st.integers(0, 9999))
def test_a_partition_with_its_sizes_and_means(name: str, r: int, seed: int) -> None:
    x, key, constraints = tokens(seed)
    reduction = MATCHINGS[name](key, r, **constraints)
    merged, added = reduction.merge(x), reduction.sum(x)
    assert torch.equal(reduction.source >= 0, constraints["real"])
    for b in range(B):
        for place in range(reduction.real.shape[1]):
            group = (reduction.source[b] == place).nonzero().flatten()
            assert bool(reduction.real[b, place]) == (len(group) > 0)
            sizes = constraints["sizes"][b, group]
            assert reduction.sizes[b, place] == sizes.sum()
            if len(group):
                mean = (sizes[:, None] * x[b, group]).sum(0) / sizes.sum()
                torch.testing.assert_close(merged[b, place], mean, rtol=0, atol=1e-12)
                torch.testing.assert_close(added[b, place], x[b, group].sum(0), rtol=0, atol=1e-12)
                assert not constraints["protected"][b, group].any() or len(group) == 1


@matchings
@examples
@given(r=st.integers(1, 9), seed=st.integers(0, 9999))
def test_unmerging_copies_each_place_to_its_tokens(name: str, r: int, seed: int) -> None:
    x, key, constraints = tokens(seed)
    reduction = MATCHINGS[name](key, r, **constraints)
    merged = reduction.merge(x)
    back = reduction.unmerge(merged)
    assert back.shape == x.shape
    for b in range(B):
        for s in range(S):
            place = int(reduction.source[b, s])
            alone = int((reduction.source[b] == place).sum()) == 1
            if place >= 0:
                assert torch.equal(back[b, s], merged[b, place])
                assert not alone or torch.equal(back[b, s], x[b, s])
    if not reduction.unchanged:
        assert not back[~constraints["real"]].any() and not merged[~reduction.real].any()


@matchings
@examples
@given(r=st.integers(0, 5), again=st.integers(0, 5), seed=st.integers(0, 9999))
def test_two_layers_are_one_map(name: str, r: int, again: int, seed: int) -> None:
    x, key, constraints = tokens(seed)
    del constraints["sizes"]
    first = MATCHINGS[name](key, r, **constraints)
    matching = bipartite if name == "grid" else MATCHINGS[name]  # what is left is no grid
    protected = first.any(constraints["protected"])
    later = matching(
        first.merge(key), again, real=first.real, protected=protected, sizes=first.sizes
    )
    both = first.then(later)
    assert torch.equal(both.sizes.sum(1), constraints["real"].sum(1).double())
    assert torch.equal(both.source >= 0, constraints["real"])
    where = later.real
    torch.testing.assert_close(
        both.merge(x)[where], later.merge(first.merge(x))[where], rtol=0, atol=1e-12
    )
    y = random(*later.real.shape, D, seed=seed)
    one, two = both.unmerge(y), first.unmerge(later.unmerge(y))
    assert torch.equal(one[constraints["real"]], two[constraints["real"]])
    weights = random(B, H, D, later.real.shape[1], seed=seed).masked_fill(
        ~later.real[:, None, None], 0.0
    )
    spread = both.spread(weights)
    assert spread.shape == (B, H, D, S)
    torch.testing.assert_close(spread.sum(-1), weights.sum(-1), rtol=0, atol=1e-12)
    carried = later.any(protected) & later.real
    assert torch.equal(carried.sum(1), (constraints["protected"] & constraints["real"]).sum(1))


@matchings
@examples
@given(count=st.integers(1, 4), merged=st.integers(0, 4), seed=st.integers(0, 9999))
def test_merged_duplicates_leave_attention_as_it_was(
    name: str, count: int, merged: int, seed: int
) -> None:
    query, key, value = (
        random(B, count, H * K, seed=seed + i).repeat_interleave(4, 1) for i in range(3)
    )
    real = torch.ones(B, 4 * count, dtype=torch.bool)
    real[1, 4:] = False  # but for one group

    def heads(x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], H, K).transpose(1, 2)

    def look(sizes: Tensor, real: Tensor, *sequences: Tensor) -> Tensor:
        bias = size_bias(sizes, real)
        query, key, value = (heads(x) for x in sequences)
        output, _ = attend(query, key, value, real[:, None, None], bias=bias)
        fused, _ = attend(query, key, value, bias=bias, need_weights=False)
        torch.testing.assert_close(output, fused, rtol=0, atol=1e-12)
        return output.transpose(1, 2).flatten(2)

    expected = look(torch.ones(B, 4 * count).double(), real, query, key, value)
    matching = (
        MATCHINGS[name] if name != "grid" else partial(grid, shape=(1, 4 * count), cell=(1, 2))
    )
    # Of four equal tokens two join the other two; then, where all did, one joins the other.
    once = matching(heads(key).mean(1), 2 * count, real=real)
    left = [once.merge(x) for x in (query, key, value)]
    if name == "grid":
        matching = partial(grid, shape=(1, left[0].shape[1]), cell=(1, 2))
    twice = matching(heads(left[1]).mean(1), merged, real=once.real, sizes=once.sizes)
    output = look(twice.sizes, twice.real, *(twice.merge(x) for x in left))
    assert output.shape[1] == 2 * count - min(merged, count)
    torch.testing.assert_close(
        once.then(twice).unmerge(output)[real], expected[real], rtol=0, atol=1e-12
    )


def test_a_bias_of_ones_is_none() -> None:
    query, key, value = random(3, B, H, S, K, seed=3)
    real, _ = masks(3)
    mask = real[:, None, None]
    plain, plain_weights = attend(query, key, value, mask)
    biased, biased_weights = attend(
        query, key, value, mask, bias=size_bias(torch.ones(B, S).double(), real)
    )
    assert plain_weights is not None and biased_weights is not None
    assert torch.equal(plain, biased) and torch.equal(plain_weights, biased_weights)
    assert size_bias(torch.tensor([[1.0, 0.0]])).tolist() == [[[[0.0, -torch.inf]]]]


@matchings
@examples
@given(r=st.integers(1, 9), seed=st.integers(0, 9999))
def test_neither_companions_nor_padding_matter(name: str, r: int, seed: int) -> None:
    x, key, constraints = tokens(seed)
    b = 1
    here = MATCHINGS[name](key, r, **constraints)
    other_x, other_key, other = tokens(seed + 1)
    other_x[b], other_key[b] = x[b].nan_to_num(7.0), key[b].nan_to_num(-3.0)
    for name_, given_ in constraints.items():
        other[name_][b] = given_[b]
    there = MATCHINGS[name](other_key, r, **other)
    assert torch.equal(here.source[b], there.source[b])
    assert torch.equal(here.sizes[b][here.real[b]], there.sizes[b][there.real[b]])
    assert torch.equal(here.merge(x)[b][here.real[b]], there.merge(other_x)[b][there.real[b]])
    if name == "grid":
        return  # whose sentences have one length
    kept = constraints["real"][b]
    alone = MATCHINGS[name](
        key[b : b + 1, kept], r, **{n: mask[b : b + 1, kept] for n, mask in constraints.items()}
    )
    assert torch.equal(alone.source[0], here.source[b, kept])
    torch.testing.assert_close(
        alone.merge(x[b : b + 1, kept])[0],
        here.merge(x)[b][here.real[b]],
        rtol=0,
        atol=1e-12,
        equal_nan=True,
    )


def test_behind_a_class_token_the_split_is_the_papers() -> None:
    key, protected = random(1, 7, K, seed=5), torch.zeros(1, 7, dtype=torch.bool)
    protected[:, 0] = True
    reduction = bipartite(key, 3, protected=protected)
    # Positions 2, 4 and 6 joined these.
    assert reduction.source[0, [0, 1, 3, 5]].tolist() == [0, 1, 2, 3]


def test_gradients_are_those_of_finite_differences() -> None:
    x, key, constraints = tokens(6)
    x = x.nan_to_num(0.5).requires_grad_()
    key = key.nan_to_num(0.5).requires_grad_()
    reduction = bipartite(key, 3, **constraints)
    places = reduction.real.shape[1]
    assert not any(held.requires_grad for held in (reduction.share, reduction.sizes))
    assert torch.autograd.gradcheck(reduction.merge, x)
    assert torch.autograd.gradcheck(reduction.sum, x)
    assert torch.autograd.gradcheck(
        reduction.unmerge, random(B, places, 2, seed=6).requires_grad_()
    )
    assert torch.autograd.gradcheck(reduction.spread, random(B, 2, places, seed=6).requires_grad_())
    (slope,) = torch.autograd.grad(reduction.merge(x).square().sum(), x)
    assert not slope[~constraints["real"]].any() and (slope[constraints["real"]] != 0).all()


def test_garbage_in_the_padding_reaches_no_gradient() -> None:
    x, key, constraints = tokens(7)
    x.requires_grad_()
    reduction = neighbours(key, 3, **constraints)
    back = reduction.unmerge(reduction.merge(x))
    (slope,) = torch.autograd.grad(back[constraints["real"]].sum(), x)
    assert not slope.isnan().any() and not slope[~constraints["real"]].any()


@matchings
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes_are_preserved(name: str, dtype: torch.dtype) -> None:
    key = random(B, S, K, seed=8).to(dtype)
    reduction = MATCHINGS[name](key, 2)
    assert (
        reduction.sizes.dtype
        == reduction.merge(key).dtype
        == size_bias(reduction.sizes, reduction.real).dtype
        == dtype
    )
    assert reduction.merge(key.double()).dtype == torch.float64


@matchings
def test_equal_tokens_and_zeros_are_merged_too(name: str) -> None:
    for value in (0.0, 1.0):
        reduction = MATCHINGS[name](torch.full((B, S, K), value), 2)
        assert reduction.real.shape == (B, S - 2)


def test_of_equal_pairs_the_left_come_first() -> None:
    reduction = neighbours(torch.ones(1, 5, K), 9)
    assert reduction.source.tolist() == [[0, 0, 1, 1, 2]]


@pytest.mark.parametrize("matching", [bipartite, neighbours])
@pytest.mark.parametrize("shape", [(0, S, K), (B, 0, K), (B, 1, K)], ids=str)
def test_nothing_to_merge(matching: Matching, shape: tuple[int, int, int]) -> None:
    reduction = matching(torch.ones(shape), 3)
    assert reduction.unchanged and reduction.real.shape == shape[:2]
    padding = matching(torch.ones(B, S, K), 3, real=torch.zeros(B, S, dtype=torch.bool))
    assert padding.unchanged and not padding.sizes.any()


@examples
@given(r=st.integers(0, 50), layers=st.integers(1, 20))
def test_schedules(r: int, layers: int) -> None:
    assert schedule(r, layers) == [r] * layers
    falling = schedule(r, layers, "decreasing")
    assert (
        len(falling) == layers
        and sum(falling) == r * layers
        and falling == sorted(falling, reverse=True)
    )
    if layers > 1:
        assert (falling[0], falling[-1]) == (2 * r, 0)
        assert all(abs(n - 2 * r * (1 - i / (layers - 1))) < 1 for i, n in enumerate(falling))
    assert schedule(falling, layers) == falling
