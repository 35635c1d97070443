"""Merging on the grid of an image: parity with tomesd, and random destinations in its cells."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.layers.reduction.merging import grid

B, D, K = 3, 5, 4
examples = settings(max_examples=25, deadline=None)


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@examples
@given(
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    cell=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    r=st.integers(0, 40),
    seed=st.integers(0, 9999),
)
def test_the_grid_is_that_of_tomesd(
    height: int, width: int, cell: tuple[int, int], r: int, seed: int
) -> None:
    tomesd = pytest.importorskip("tomesd.merge", reason="tomesd is not installed")
    tall, wide = min(cell[0], height), min(cell[1], width)
    key = random(B, height * width, K, seed=seed)
    ours = grid(key, r, (height, width), cell=(tall, wide))
    merge, unmerge = tomesd.bipartite_soft_matching_random2d(
        key, width, height, wide, tall, r, no_rand=True
    )
    # Its places are in another order, so both are compared after unmerging.
    for x in (
        random(B, height * width, D, seed=seed),
        torch.eye(height * width).double().expand(B, -1, -1),
    ):
        merged = merge(x)
        assert ours.merge(x).shape == merged.shape
        torch.testing.assert_close(ours.unmerge(ours.merge(x)), unmerge(merged), rtol=0, atol=1e-12)


@examples
@given(
    shape=st.tuples(st.integers(2, 7), st.integers(2, 7)),
    r=st.integers(0, 40),
    seed=st.integers(0, 9999),
)
def test_whole_pictures_are_matched_as_with_a_mask(
    shape: tuple[int, int], r: int, seed: int
) -> None:
    length = shape[0] * shape[1]
    key = random(B, length, K, seed=seed)
    real = torch.ones(B, length, dtype=torch.bool)
    ours, masked = (
        grid(key, r, shape, generator=torch.Generator().manual_seed(seed), real=mask)
        for mask in (None, real)
    )
    for name in ("source", "share", "sizes", "real"):
        assert torch.equal(getattr(ours, name), getattr(masked, name)), name
    assert ours.unchanged == masked.unchanged


def test_random_cells_depend_on_their_generator_alone() -> None:
    key = random(1, 36, K, seed=4).expand(B, -1, -1)

    def drawn(seed: int) -> Tensor:
        return grid(key, 20, (6, 6), generator=torch.Generator().manual_seed(seed)).source

    torch.manual_seed(1)
    state, sources = torch.get_rng_state(), [drawn(seed) for seed in range(8)]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert all(torch.equal(drawn(seed), source) for seed, source in enumerate(sources))
    assert len({tuple(source.flatten().tolist()) for source in sources}) == 8
    assert all(torch.equal(source[0], source[b]) for source in sources for b in range(B))


def test_random_destinations_stand_one_in_each_cell() -> None:
    height, width, cell, seen = 5, 7, (2, 3), torch.zeros(35)
    key, each_once = random(1, 35, K, seed=5).expand(35, -1, -1), torch.eye(35, dtype=torch.bool)
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        # All tokens that can, join. A protected one stays too, unless it is a destination anyway.
        reduction = grid(
            key, 99, (height, width), cell=cell, generator=generator, protected=each_once
        )
        destinations = (reduction.real.sum(1) == 4).nonzero().flatten()
        assert sorted((s // 7 // 2, s % 7 // 3) for s in destinations.tolist()) == [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
        ]
        seen[destinations] += 1
    cells = seen.view(height, width)
    assert (cells[:4, :6] > 0).all() and not cells[4].any() and not cells[:, 6].any()
