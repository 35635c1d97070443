"""Reduction plans: which one a recipe describes, numbers per layer, and shares of attention."""

import re
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.layers.reduction.plans import (
    Pruning,
    SoftPruning,
    TopPruning,
    falling,
    plan_of,
    rising,
)
from seq2see.layers.reduction.pruning import importance, received
from seq2see.recipe.schema import ReduceConfig

B, H, S = 3, 2, 11
LENGTHS = torch.tensor([11, 6, 9])


def test_no_plan_without_a_kind() -> None:
    assert plan_of(ReduceConfig(), 3) is None


def test_a_recipe_describes_merging() -> None:
    config = ReduceConfig(kind="merge", r=3, schedule="decreasing", match="neighbours")
    plan: Any = plan_of(config, 3)
    assert (plan.r, plan.match.__name__, plan.seed) == ([6, 3, 0], "neighbours", None)
    plan = plan_of(ReduceConfig(kind="merge", r=[1, 2, 3]), 3)
    assert plan.r == [1, 2, 3]


def test_a_recipe_describes_pruning() -> None:
    plan: Any = plan_of(ReduceConfig(kind="prune", thresholds=0.25), 2)
    assert type(plan) is Pruning and plan.thresholds.tolist() == [0.125, 0.25]
    config = ReduceConfig(kind="prune", mode="soft", thresholds=[0.5], temperature=0.1, penalty=0.2)
    plan = plan_of(config, 1)
    assert type(plan) is SoftPruning
    assert (plan.temperature, plan.penalty, plan.thresholds.item()) == (0.1, 0.2, 0.5)
    plan = plan_of(ReduceConfig(kind="prune", mode="top", keep=0.5), 2)
    assert type(plan) is TopPruning and plan.shares == [0.75, 0.5]


def test_one_number_is_that_of_the_last_layer() -> None:
    assert rising(0.3, 3) == pytest.approx([0.1, 0.2, 0.3])
    assert falling(0.4, 3) == pytest.approx([0.8, 0.6, 0.4])
    assert (rising(0.25, 1), falling(0.25, 1)) == ([0.25], [0.25])


@pytest.mark.parametrize(("name", "per_layer"), [("thresholds", rising), ("shares", falling)])
def test_wrong_numbers_are_refused(name: str, per_layer: Any) -> None:
    for value in (float("nan"), -0.1, [0.5, float("nan"), 0.1]):
        rule = r"of tokens to prune: (nan|-0\.1) must be a number of at least 0$"
        with pytest.raises(InputError, match=f"^{name} {rule}"):
            per_layer(value, 3)
    line = f"{name} [0.1, 0.2] must be one number, or one for each of 3 layers"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        per_layer([0.1, 0.2], 3)


def test_attention_received_is_counted_in_even_shares() -> None:
    real = torch.arange(S) < LENGTHS[:, None]
    scores = torch.randn(B, H, S, S, dtype=torch.float64)
    weights = scores.masked_fill(~real[:, None, None], float("-inf")).softmax(-1)
    shares = received(weights, real)
    torch.testing.assert_close(shares, importance(weights, real) * LENGTHS[:, None])
    # The mean is 1, whatever the length.
    torch.testing.assert_close((shares * real).sum(1), LENGTHS.double())
    assert not shares[~real].any()
    torch.testing.assert_close(received(weights, real.double() / 2), shares / 2)
