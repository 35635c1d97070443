"""Wrong calls of matchings, reductions and schedules: refused in one line that names the rule."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from seq2see.layers.reduction.merging import bipartite, grid, neighbours, schedule, size_bias
from seq2see.layers.reduction.reduction import Reduction

B, S, D, H, K = 3, 12, 5, 2, 4  # mutually different, so that swapped axes fail
MATCHINGS: dict[str, Callable[..., Reduction]] = {
    "bipartite": bipartite,
    "grid": partial(grid, shape=(3, 4)),
    "neighbours": neighbours,
}
matchings = pytest.mark.parametrize("name", list(MATCHINGS))


def refused(line: str, call: Callable[..., object], *given: Any, **keys: Any) -> None:
    with pytest.raises(TypeError if "dtype" in line else ValueError, match=f"^{re.escape(line)}$"):
        call(*given, **keys)


@matchings
def test_wrong_calls_of_a_matching_are_refused(name: str) -> None:
    matching, key, wrong = MATCHINGS[name], torch.ones(B, S, K), torch.ones(B, S - 1)
    line = "key has shape (3, 2, 12, 4); it must be (batch, length, size), the mean over heads"
    refused(line, matching, torch.ones(B, H, S, K), 2)
    refused("r (-1) must be a whole number of at least 0", matching, key, -1)
    refused("r (2.5) must be a whole number of at least 0", matching, key, 2.5)
    refused(
        "keys or scores have dtype torch.int64; they must be floating point",
        matching,
        key.long(),
        2,
    )
    refused("real has shape (3, 11); it must be (3, 12)", matching, key, 2, real=wrong.bool())
    refused(
        "protected has shape (3, 11); it must be (3, 12)", matching, key, 2, protected=wrong.bool()
    )
    refused("real has dtype torch.float32; it must be bool", matching, key, 2, real=key[..., 0])
    line = "sizes has shape (3, 11) and minimum 1; it must be (3, 12) and above 0 at real tokens"
    refused(line, matching, key, 2, sizes=wrong)
    line = "sizes has shape (3, 12) and minimum 0; it must be (3, 12) and above 0 at real tokens"
    refused(line, matching, key, 2, sizes=torch.zeros(B, S))


def test_wrong_grids_are_refused() -> None:
    key = torch.ones(B, S, K)
    refused("a grid of 3 × 5 has 15 tokens; key has 12", grid, key, 2, (3, 5))
    refused(
        "cell (4, 1) must be between (1, 1) and the grid's (3, 4)",
        grid,
        key,
        2,
        (3, 4),
        cell=(4, 1),
    )
    refused(
        "cell (1, 0) must be between (1, 1) and the grid's (3, 4)",
        grid,
        key,
        2,
        (3, 4),
        cell=(1, 0),
    )


def test_wrong_calls_of_a_reduction_are_refused() -> None:
    reduction = bipartite(torch.randn(B, S, K), 4)
    x, y = torch.ones(B, S, D), torch.ones(B, S - 4, D)
    refused("x has shape (3, 8, 5); it must be (3, 12, ...)", reduction.merge, y)
    refused("x has shape (3, 8, 5); it must be (3, 12, ...)", reduction.sum, y)
    refused("x has dtype torch.int64; a mean needs floating point", reduction.merge, x.long())
    refused("y has shape (3, 12, 5); it must be (3, 8, ...)", reduction.unmerge, x)
    refused(
        "weights has shape (3, 2, 12); it must be (3, ..., 8)",
        reduction.spread,
        torch.ones(B, H, S),
    )
    refused("mask has shape (3, 8); it must be (3, 12)", reduction.any, reduction.real)
    refused(
        "the later reduction takes (3, 12) tokens; the first leaves (3, 8)",
        reduction.then,
        reduction,
    )


def test_wrong_schedules_and_biases_are_refused() -> None:
    refused("layers (0) must be at least 1", schedule, 3, 0)
    refused("r (-3) must be a whole number of at least 0", schedule, -3, 4)
    refused("kind is 'cosine'; it must be 'constant' or 'decreasing'", schedule, 3, 4, "cosine")
    for r, kind in (([1, 2], "constant"), ([1, -2, 1], "constant"), ([1, 2, 1], "decreasing")):
        rule = "a number of at least 0 for each of 3 layers, with kind 'constant'"
        refused(f"r {r} with kind {kind!r} must be {rule}", schedule, r, 3, kind)
    refused(
        "sizes has shape (3, 12, 1); it must be (batch, length)", size_bias, torch.ones(B, S, 1)
    )
    refused(
        "real has shape (3, 11); it must be (3, 12)",
        size_bias,
        torch.ones(B, S),
        torch.ones(B, S - 1).bool(),
    )
