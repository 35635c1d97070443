"""Encoder layers that go on with fewer tokens: which, for whom, how it is counted, and what nothing changes."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seq2see.layers.reduction.encoder import Reducible, counts, operations, through
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from seq2see.errors import InputError
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import EncoderLayer, FeedForward
from seq2see.layers.reduction import encoder as reducing
from seq2see.layers.reduction.plans import (
    Merging,
    Plan,
    Pruning,
    SoftPruning,
    Tokens,
    TopPruning,
    falling,
    plan_of,
    rising,
)
from seq2see.layers.reduction.pruning import FLOOR, importance, received
from seq2see.layers.trace import Trace
from seq2see.recipe.schema import ReduceConfig

B, S, D, H, F, LAYERS = 3, 11, 12, 2, 20, 3  # mutually different, so that swapped axes fail
LENGTHS = torch.tensor([11, 6, 9])
examples = settings(max_examples=10, deadline=None)
PLANS: dict[str, Callable[[], Plan]] = {
    "bipartite": lambda: Merging([2, 3, 1]),
    "neighbours": lambda: Merging([2, 3, 1], "neighbours"),
    "random merging": lambda: Merging([2, 3, 1], seed=5),
    "thresholds": lambda: Pruning([0.9, 1.0, 1.1]),
    "top": lambda: TopPruning([0.9, 0.6, 0.4]),
    "random pruning": lambda: TopPruning([0.9, 0.6, 0.4], seed=5),
    "soft": lambda: SoftPruning([0.9, 1.0, 1.1], 0.1, 0.1),
}
each = pytest.mark.parametrize("name", PLANS)
removing = pytest.mark.parametrize("name", [name for name in PLANS if name != "soft"])


def layers(norm: str = "pre", **keys: Any) -> Any:
    torch.manual_seed(1)
    found = [
        EncoderLayer(MultiHeadAttention(D, H, **keys), FeedForward(D, F), norm=norm).double()
        for _ in range(LAYERS)
    ]
    return nn.ModuleList(found).eval()


def tokens(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """x (B, S, D), which tokens are real, and which are protected: the last of each sentence."""
    x = torch.randn(B, S, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    place = torch.arange(S)
    return x, place < LENGTHS[:, None], place == LENGTHS[:, None] - 1


def run(
    name: str, seed: int = 0, trace: Trace | None = None, rows: slice = slice(None), cut: int = S
) -> Tokens:
    x, real, protected = (part[rows, :cut] for part in tokens(seed))
    return through(layers(), x, real, PLANS[name]().double(), protected, trace)


def close(left: Tensor, right: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


@removing
def test_the_feed_forward_and_the_next_layer_receive_fewer_tokens(name: str) -> None:
    stack, seen = layers(), dict[str, list[int]](attention=[], feed_forward=[])
    for layer in stack:
        for kind, part in (
            ("attention", layer.self_attention.query),
            ("feed_forward", layer.feed_forward.expand),
        ):
            part.register_forward_hook(
                lambda _, given, __, kind=kind: seen[kind].append(given[0][..., 0].numel())
            )
    x, real, protected = tokens()
    left = through(stack, x, real, PLANS[name]().double(), protected)
    assert (
        B * S
        == seen["attention"][0]
        > seen["attention"][1]
        > seen["attention"][2]
        > left.real.numel()
    )
    thought = seen["feed_forward"]  # not even about padding
    assert real.sum() > thought[0] > thought[1] > thought[2] == left.real.sum()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "plan", [Merging([0, 0, 0]), Pruning([0.0] * 3), TopPruning([1.0] * 3)], ids=lambda p: str(p)
)
def test_a_plan_that_takes_nothing_changes_nothing(plan: Plan, norm: str, traced: bool) -> None:
    stack, (x, real, protected) = layers(norm), tokens()
    expected, plain, trace = x, Trace(traced), Trace(traced)
    for i, layer in enumerate(stack):
        expected = layer(expected, real[:, None, None], plain.at(f"encoder.{i}"))
    left = through(stack, x, real, plan, protected, trace)
    assert torch.equal(left.states, expected) and torch.equal(left.real, real) and left.bias is None
    assert plain.weights.keys() == trace.weights.keys()
    assert all(
        torch.equal(weights, trace.on_tokens()[name]) for name, weights in plain.weights.items()
    )


@each
@examples
@given(seed=st.integers(0, 9999))
def test_the_maps_are_partitions_and_sizes_add_up(name: str, seed: int) -> None:
    trace = Trace(weights=False)
    left = run(name, seed, trace)
    _, real, protected = tokens(seed)
    for step in trace.reductions:
        for b in range(B):
            held = step.source[b][step.source[b] >= 0]
            assert sorted(set(held.tolist())) == list(
                range(int(step.real[b].sum()))
            )  # no place is empty
            assert (
                int(step.source[b, LENGTHS[b] - 1]) == int(step.real[b].sum()) - 1
            )  # the protected one is the last
        assert not (step.source >= 0)[~real].any()
    if isinstance(PLANS[name](), Merging):
        assert torch.equal(left.sizes.sum(1), LENGTHS.double())
        assert torch.equal(step.source >= 0, real)
    elif name != "soft":
        assert torch.equal(left.sizes, left.real.double()) and left.bias is None
    assert torch.equal(left.protected.sum(1), protected.sum(1))
    assert torch.equal(left.first, LENGTHS)


@each
@examples
@given(seed=st.integers(0, 9999), b=st.integers(0, B - 1))
def test_companions_and_padding_have_no_say(name: str, seed: int, b: int) -> None:
    together = run(name, seed)
    alone = run(name, seed, rows=slice(b, b + 1), cut=int(LENGTHS[b]))
    kept = together.real[b]
    close(together.states[b, kept], alone.states[0])
    close(together.sizes[b, kept], alone.sizes[0])


@each
@pytest.mark.parametrize("sentences", [1, 2])
def test_so_many_sentences_at_a_time_give_the_same(
    name: str, sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, (seen, parts) = (
        run(name, trace=(trace := Trace(weights=False))),
        (Trace(weights=False), list[Tensor]()),
    )
    look = EncoderLayer.look
    monkeypatch.setattr(
        EncoderLayer,
        "look",
        lambda self, x, *rest, **keys: (parts.append(x), look(self, x, *rest, **keys))[1],
    )
    monkeypatch.setattr(reducing, "WEIGHTS_AT_ONCE", sentences * H * S**2)
    found = run(name, trace=seen)
    close(found.states[found.real], whole.states[whole.real])
    for field in ("real", "protected", "sizes", "first"):
        close(getattr(found, field).double(), getattr(whole, field).double())
    for left, right in zip(seen.reductions, trace.reductions, strict=True):
        for field in ("source", "share", "sizes", "real"):
            close(getattr(left, field).double(), getattr(right, field).double())
    assert (len(parts) > LAYERS) == (name in ("thresholds", "top", "soft"))
    if (
        len(parts) > LAYERS and sentences == 1
    ):  # the longest first, and none pays for another's length
        assert [len(part) for part in parts[:B]] == [1] * B
        assert [part.shape[1] for part in parts[:B]] == sorted(LENGTHS.tolist(), reverse=True)


@pytest.mark.parametrize("name", ["thresholds", "top", "soft"])
def test_sentences_of_one_length_and_none_at_all(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, real = tokens()[0], torch.ones(B, S, dtype=torch.bool)
    whole = through(layers(), x, real, PLANS[name]().double(), ~real)
    monkeypatch.setattr(reducing, "WEIGHTS_AT_ONCE", H * S**2)
    found = through(layers(), x, real, PLANS[name]().double(), ~real)
    close(found.states, whole.states)
    assert torch.equal(found.real, whole.real)
    assert (
        through(layers(), x[:0], real[:0], PLANS[name]().double(), ~real[:0]).states.shape[0] == 0
    )


@each
def test_gradients_are_the_same_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def slopes() -> list[Tensor]:
        stack, (x, real, protected) = layers(), tokens()
        plan = PLANS[name]().double()
        left = through(stack, x.requires_grad_(), real, plan, protected)
        given = [
            x,
            *stack.parameters(),
            *(each for each in plan.parameters() if each.requires_grad),
        ]
        return list(
            torch.autograd.grad(
                left.states[left.real].square().sum(), given, materialize_grads=True
            )
        )

    whole = slopes()
    monkeypatch.setattr(reducing, "WEIGHTS_AT_ONCE", H * S**2)
    for left, right in zip(slopes(), whole, strict=True):
        close(left, right)


@pytest.mark.parametrize("match", ["bipartite", "neighbours"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@examples
@given(seed=st.integers(0, 9999), r=st.integers(0, 5))
def test_merging_duplicates_leaves_all_layers_as_they_are(
    match: str, norm: str, seed: int, r: int
) -> None:
    stack = layers(norm)
    drawn = torch.randn(B, 5, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x, real = drawn.repeat_interleave(2, 1), torch.ones(B, 10, dtype=torch.bool)
    expected = x
    for layer in stack:
        expected = layer(expected)
    trace = Trace()
    left = through(stack, x, real, Merging([r, 0, 0], match), ~real, trace)
    assert left.states.shape[1] == 10 - r
    close(trace.reductions[-1].unmerge(left.states), expected)
    plain = Trace()
    through(stack, x, real, Merging([0, 0, 0]), ~real, plain)
    for (
        name,
        weights,
    ) in trace.on_tokens().items():  # one looks as both did, and both get half of what it gets
        close(weights, plain.weights[name])


@each
def test_attention_is_drawn_back_on_the_first_tokens(name: str) -> None:
    trace, (_, real, _) = Trace(), tokens()
    run(name, trace=trace)
    drawn = trace.on_tokens()
    assert list(drawn) == ["encoder.0.self", "encoder.1.self", "encoder.2.self"]
    for i, weights in enumerate(drawn.values()):
        assert weights.shape == (B, H, S, S)
        assert not weights.masked_fill(real[:, None, None], 0.0).any()
        there = real if i == 0 else trace.reductions[i - 1].source >= 0
        rows = weights.sum(-1)  # (B, H, S)
        close(rows.masked_fill(~there[:, None], 1.0), torch.ones(B, H, S).double())
        assert i == 0 or name == "soft" or not rows.masked_fill(there[:, None], 0.0).any()


def test_random_plans_take_as_many_and_others_with_another_seed() -> None:
    for kind, keys in ((Merging, [2, 3, 1]), (TopPruning, [0.8, 0.6, 0.4])):
        found = []
        for seed in (None, 1, 2, 1):
            x, real, protected = tokens()
            trace = Trace(weights=False)
            through(layers(), x, real, kind(keys, seed=seed), protected, trace)  # type: ignore[arg-type]
            found.append(trace.reductions[-1])
        assert all(torch.equal(each.real, found[0].real) for each in found)
        assert not torch.equal(found[0].source, found[1].source)
        assert not torch.equal(found[1].source, found[2].source)
        assert torch.equal(found[1].source, found[3].source)


def test_top_keeps_a_share_of_each_sentence() -> None:
    trace = Trace(weights=False)
    run("top", trace=trace)
    for step, share in zip(trace.reductions, (0.9, 0.6, 0.4), strict=True):
        assert step.real.sum(1).tolist() == [round(int(length) * share) for length in LENGTHS]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("seed", range(10))
def test_a_cold_soft_mask_is_a_removal_in_every_layer(norm: str, seed: int) -> None:
    stack, (x, real, protected) = layers(norm), tokens(seed)
    thresholds, trace = [0.9, 1.0, 1.1], Trace(weights=False)
    hard = through(stack, x, real, Pruning(thresholds).double(), protected, trace)
    soft = through(stack, x, real, SoftPruning(thresholds, 1e-9, 0.1).double(), protected)
    gone = [int((real & (step.source < 0)).sum()) for step in trace.reductions]
    assert 0 < gone[0] < gone[1] < gone[2]
    stays = trace.reductions[-1].source >= 0
    close(soft.sizes, stays.double() + (real & ~stays) * FLOOR)
    close(soft.states[stays], hard.states[hard.real], 1e-4)


def test_thresholds_count_in_even_shares() -> None:
    _, real, _ = tokens()
    looked = torch.softmax(
        torch.randn(B, H, S, S, dtype=torch.float64).masked_fill(~real[:, None, None], -1e9), -1
    )
    found = received(looked, real)
    close(found, importance(looked, real) * LENGTHS[:, None])
    close((found * real).sum(1), LENGTHS.double())  # in the mean one each, however many there are
    assert not found[~real].any()
    close(received(looked, real.double() / 2), found / 2)  # half as many to share among


def test_thresholds_learn_from_the_result_and_from_what_is_kept() -> None:
    stack, (x, real, protected) = layers(), tokens()
    plan = SoftPruning([0.8, 0.9, 1.0], 0.1, 0.3).double()
    trace = Trace(weights=False)
    left = through(stack, x, real, plan, protected, trace)
    (slope,) = torch.autograd.grad(left.states[real].sum(), plan.thresholds, retain_graph=True)
    assert (
        slope[:2].abs().min() > 0 and slope[2] == 0
    )  # the last layer's mask is for who comes after
    cost = plan.cost(trace.reductions)
    shares = [float((step.sizes.sum() / real.sum()).detach()) for step in trace.reductions]
    assert float(cost.detach()) == pytest.approx(0.3 * sum(shares) / 3)
    (slope,) = torch.autograd.grad(cost, plan.thresholds)
    assert slope.max() < 0  # a higher threshold keeps less
    assert Merging([1, 1, 1]).cost(trace.reductions) == 0.0
    assert not Pruning([0.1] * 3).thresholds.requires_grad


@pytest.mark.parametrize("name", ["bipartite", "neighbours", "thresholds", "top"])
def test_operations_are_those_that_torch_counts(name: str) -> None:
    stack, (x, _, protected) = layers(inner=6), tokens()
    real = torch.ones(1, S, dtype=torch.bool)
    trace = Trace()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        through(stack, x[:1], real, plan := PLANS[name]().double(), protected[:1], trace)
    found = operations(stack, counts(real.sum(1), trace.reductions), plan)
    assert len(found) == LAYERS and found[0] > found[1] > found[2]
    assert sum(found) == counter.get_total_flops()


@pytest.mark.parametrize("score", ["dot", "bilinear", "projected", "additive"])
def test_operations_count_the_matrices_of_other_scores(score: str) -> None:
    stack, (x, _, _) = layers(inner=6, score=score), tokens()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for layer in stack:
            layer(x[:1])
    assert sum(operations(stack, [torch.tensor([S])] * (LAYERS + 1))) == counter.get_total_flops()


@pytest.mark.parametrize("value", [float("nan"), -0.1, [0.5, float("nan"), 0.1]])
def test_what_is_no_number_is_no_threshold_and_no_share(value: float | list[float]) -> None:
    for use in (Encoder().with_pruning, Encoder().with_top):
        with pytest.raises(
            InputError,
            match=r"(thresholds|shares) of tokens to prune: (nan|-0\.1) must be a number",
        ):
            use(value)


def test_no_padding_is_counted() -> None:
    trace, (_, real, _) = Trace(weights=False), tokens()
    run("top", trace=trace)
    together, alone = (
        operations(layers(), counts(real.sum(1), trace.reductions)),
        torch.zeros(LAYERS),
    )
    for b in range(B):
        trace = Trace(weights=False)
        run("top", trace=trace, rows=slice(b, b + 1), cut=int(LENGTHS[b]))
        alone += torch.tensor(operations(layers(), counts(LENGTHS[b : b + 1], trace.reductions)))
    assert together == alone.tolist()


class Encoder(Reducible):
    def __init__(self, **keys: Any) -> None:
        super().__init__()
        self.encoder, self.plan = layers(**keys), None


def test_a_model_with_a_plan_shares_the_weights_and_leaves_the_model_as_it_is() -> None:
    model = Encoder()
    merging, pruning = (
        model.with_merging(2, kind="decreasing", match="neighbours"),
        model.with_pruning(0.3),
    )
    assert (model.plan, merging.plan.r, merging.with_plan(None).plan) == (None, [4, 2, 0], None)
    assert [round(float(each), 6) for each in pruning.plan.thresholds] == [0.1, 0.2, 0.3]
    assert pruning.plan.thresholds.dtype == torch.float64
    assert model.with_top([0.9, 0.8, 0.1]).plan.shares == [0.9, 0.8, 0.1]
    assert (
        len(list(model.parameters()))
        == len(list(merging.parameters()))
        == len(list(pruning.parameters())) - 1
    )
    for other in (merging, pruning):
        assert other.encoder is model.encoder


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="rotary positions are counted anew"):
        Encoder(rotary=True).with_merging(2)
    with pytest.raises(
        ValueError,
        match=re.escape("thresholds [0.1] must be one number, or one for each of 3 layers"),
    ):
        Encoder().with_pruning([0.1])
    with pytest.raises(ValueError, match=re.escape("shares [0.1, 0.2] must be one number")):
        Encoder().with_top([0.1, 0.2])


def test_a_recipe_says_which_plan() -> None:
    assert plan_of(ReduceConfig(), 3) is None
    merging: Any = plan_of(
        ReduceConfig(kind="merge", r=3, schedule="decreasing", match="neighbours"), 3
    )
    assert (merging.r, merging.match.__name__, merging.seed) == ([6, 3, 0], "neighbours", None)
    assert plan_of(ReduceConfig(kind="merge", r=[1, 2, 3]), 3).r == [1, 2, 3]  # type: ignore[union-attr]
    hard: Any = plan_of(ReduceConfig(kind="prune", thresholds=0.25), 2)
    assert type(hard) is Pruning and hard.thresholds.tolist() == [0.125, 0.25]
    soft: Any = plan_of(
        ReduceConfig(kind="prune", mode="soft", thresholds=[0.5], temperature=0.1, penalty=0.2), 1
    )
    assert type(soft) is SoftPruning and (
        soft.temperature,
        soft.penalty,
        soft.thresholds.item(),
    ) == (0.1, 0.2, 0.5)
    top: Any = plan_of(ReduceConfig(kind="prune", mode="top", keep=0.5), 2)
    assert type(top) is TopPruning and top.shares == [0.75, 0.5]
    assert (rising(0.25, 1), falling(0.25, 1)) == ([0.25], [0.25])
