"""Encoders that reduce their tokens: the tokens left, companions, parts, traces and operations."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import EncoderLayer, FeedForward
from seq2see.layers.real_rows import RealRows
from seq2see.layers.reduction.plans import Merging, Plan, Pruning, SoftPruning, TopPruning
from seq2see.layers.reduction.pruning import FLOOR
from seq2see.layers.trace import Trace
from seq2see.models import reduced
from seq2see.models.parts import Memory
from seq2see.models.reduced import ReducedEncoder, counts, operations

B, S, D, H, F, LAYERS = 3, 11, 12, 2, 20, 3  # mutually different, so that swapped axes fail
LENGTHS = torch.tensor([11, 6, 9])
PLANS: dict[str, Callable[[], Plan]] = {
    "bipartite": lambda: Merging([2, 3, 1]),
    "neighbours": lambda: Merging([2, 3, 1], "neighbours"),
    "random merging": lambda: Merging([2, 3, 1], seed=5),
    "thresholds": lambda: Pruning([0.9, 1.0, 1.1]),
    "top": lambda: TopPruning([0.9, 0.6, 0.4]),
    "random pruning": lambda: TopPruning([0.9, 0.6, 0.4], seed=5),
    "soft": lambda: SoftPruning([0.9, 1.0, 1.1], 0.1, 0.1),
}
BY_WEIGHTS = ("thresholds", "top", "soft")
examples = settings(max_examples=10, deadline=None)
all_plans = pytest.mark.parametrize("name", PLANS)
removing = pytest.mark.parametrize("name", [name for name in PLANS if name != "soft"])
norms = pytest.mark.parametrize("norm", ["pre", "post"])


def layers(norm: str = "pre", **keys: Any) -> nn.ModuleList:
    torch.manual_seed(1)
    stack = [
        EncoderLayer(MultiHeadAttention(D, H, **keys), FeedForward(D, F), norm=norm)
        for _ in range(LAYERS)
    ]
    return nn.ModuleList(stack).double().eval()


def tokens(seed: int = 0) -> tuple[Tensor, Tensor]:
    """x (B, S, D), and the mask of its real tokens (B, 1, 1, S)."""
    x = torch.randn(B, S, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x, (torch.arange(S) < LENGTHS[:, None])[:, None, None]


def encoder_of(plan: Plan, special: str | None = "last", **keys: Any) -> ReducedEncoder:
    return ReducedEncoder(layers(**keys), special, plan.double())


def encode(name: str, seed: int = 0, trace: Trace | None = None) -> Memory:
    return encoder_of(PLANS[name]())(*tokens(seed), trace)


def real_of(memory: Memory) -> Tensor:
    assert memory.mask is not None
    return memory.mask[:, 0, 0]  # (B, P)


def sizes_of(memory: Memory) -> Tensor:
    assert memory.sizes is not None
    return memory.sizes


def close(left: Tensor, right: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


@removing
def test_the_feed_forward_and_the_next_layer_receive_fewer_tokens(name: str) -> None:
    encoder = encoder_of(PLANS[name]())
    inputs: dict[str, list[int]] = {"attention": [], "feed_forward": []}

    def count(kind: str, part: nn.Module) -> None:
        part.register_forward_hook(
            lambda _, given, __: inputs[kind].append(given[0][..., 0].numel())
        )

    for layer in encoder:
        count("attention", layer.self_attention.query)
        count("feed_forward", layer.feed_forward.expand)
    memory = encoder(*tokens())
    first, second, third = inputs["attention"]
    assert B * S == first > second > third > real_of(memory).numel()
    first, second, third = inputs["feed_forward"]  # without padding
    assert LENGTHS.sum() > first > second > third == real_of(memory).sum()


@all_plans
@examples
@given(seed=st.integers(0, 9999))
def test_maps_are_partitions_and_sizes_add_up(name: str, seed: int) -> None:
    trace = Trace(weights=False)
    memory = encode(name, seed, trace)
    real = tokens(seed)[1][:, 0, 0]
    for step in trace.reductions:
        for b in range(B):
            places = int(step.real[b].sum())
            held = step.source[b][step.source[b] >= 0]
            assert sorted(set(held.tolist())) == list(range(places))  # no place is empty
            # The protected token stays the last, and by itself.
            assert int(step.source[b, LENGTHS[b] - 1]) == places - 1
            assert int((step.source[b] == places - 1).sum()) == 1
        assert not (step.source >= 0)[~real].any()
    if isinstance(PLANS[name](), Merging):
        assert torch.equal(sizes_of(memory).sum(1), LENGTHS.double())
        assert torch.equal(trace.reductions[-1].source >= 0, real)
    elif name != "soft":
        assert torch.equal(sizes_of(memory), real_of(memory).double())
        assert memory.bias is None


@all_plans
@examples
@given(seed=st.integers(0, 9999), b=st.integers(0, B - 1))
def test_neither_companions_nor_padding_matter(name: str, seed: int, b: int) -> None:
    together = encode(name, seed)
    x, mask = tokens(seed)
    length = int(LENGTHS[b])
    encoder = encoder_of(PLANS[name]())
    alone = encoder(x[b : b + 1, :length], mask[b : b + 1, ..., :length])
    kept = real_of(together)[b]
    close(together.states[b, kept], alone.states[0])
    close(sizes_of(together)[b, kept], sizes_of(alone)[0])


@all_plans
def test_rows_without_padding_are_padded_again(name: str) -> None:
    x, mask = tokens()
    rows = RealRows(mask[:, 0, 0])
    encoder = encoder_of(PLANS[name]())
    memory, expected = encoder(rows.gather(x), mask, rows=rows), encoder(x, mask)
    assert torch.equal(memory.states[real_of(memory)], expected.states[real_of(expected)])
    assert torch.equal(real_of(memory), real_of(expected))
    assert memory.rows.dims == 3


@all_plans
@pytest.mark.parametrize("sentences", [1, 2])
def test_attention_in_parts_equals_attention_in_one(
    name: str, sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(weights=False)
    whole = encode(name, trace=trace)
    parts: list[Tensor] = []
    attend_to_self = reduced._attend_to_self

    def recorded(layer: EncoderLayer, x: Tensor, *rest: Any) -> Any:
        parts.append(x)
        return attend_to_self(layer, x, *rest)

    monkeypatch.setattr(reduced, "_attend_to_self", recorded)
    monkeypatch.setattr(reduced, "WEIGHTS_IN_CACHE", sentences * H * S**2)
    other = Trace(weights=False)
    memory = encode(name, trace=other)
    assert torch.equal(real_of(memory), real_of(whole))
    close(memory.states[real_of(memory)], whole.states[real_of(whole)])
    close(sizes_of(memory), sizes_of(whole))
    for left, right in zip(other.reductions, trace.reductions, strict=True):
        for field in ("source", "share", "sizes", "real"):
            close(getattr(left, field).double(), getattr(right, field).double())
    assert (len(parts) > LAYERS) == (name in BY_WEIGHTS)
    if name in BY_WEIGHTS and sentences == 1:  # the longest first, none padded to another's length
        assert [len(part) for part in parts[:B]] == [1] * B
        assert [part.shape[1] for part in parts[:B]] == sorted(LENGTHS.tolist(), reverse=True)


@pytest.mark.parametrize("name", BY_WEIGHTS)
def test_sentences_of_equal_length_and_an_empty_batch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tokens()[0]
    encoder = encoder_of(PLANS[name](), special=None)
    whole = encoder(x)
    monkeypatch.setattr(reduced, "WEIGHTS_IN_CACHE", H * S**2)
    memory = encoder(x)
    close(memory.states, whole.states)
    assert torch.equal(real_of(memory), real_of(whole))
    assert encoder(x[:0]).states.shape[0] == 0


@all_plans
def test_gradients_are_the_same_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gradients() -> tuple[Tensor, ...]:
        encoder = encoder_of(PLANS[name]())
        x, mask = tokens()
        memory = encoder(x.requires_grad_(), mask)
        weights = [weight for weight in encoder.parameters() if weight.requires_grad]
        total = memory.states[real_of(memory)].square().sum()
        return torch.autograd.grad(total, [x, *weights], materialize_grads=True)

    whole = gradients()
    monkeypatch.setattr(reduced, "WEIGHTS_IN_CACHE", H * S**2)
    for left, right in zip(gradients(), whole, strict=True):
        close(left, right)


@all_plans
def test_attention_is_mapped_back_to_the_first_tokens(name: str) -> None:
    trace = Trace()
    encode(name, trace=trace)
    real = tokens()[1][:, 0, 0]
    on_tokens = trace.on_tokens()
    assert list(on_tokens) == ["encoder.0.self", "encoder.1.self", "encoder.2.self"]
    for i, weights in enumerate(on_tokens.values()):
        assert weights.shape == (B, H, S, S)
        assert not weights.masked_fill(real[:, None, None], 0.0).any()
        left = real if i == 0 else trace.reductions[i - 1].source >= 0
        rows = weights.sum(-1)  # (B, H, S)
        close(rows.masked_fill(~left[:, None], 1.0), torch.ones(B, H, S).double())
        assert i == 0 or name == "soft" or not rows.masked_fill(left[:, None], 0.0).any()


@pytest.mark.parametrize(("kind", "amounts"), [(Merging, [2, 3, 1]), (TopPruning, [0.8, 0.6, 0.4])])
def test_random_plans_remove_equally_many_and_depend_on_the_seed(kind: Any, amounts: Any) -> None:
    maps = []
    for seed in (None, 1, 2, 1):
        trace = Trace(weights=False)
        encoder_of(kind(amounts, seed=seed))(*tokens(), trace)
        maps.append(trace.reductions[-1])
    assert all(torch.equal(step.real, maps[0].real) for step in maps)
    assert not torch.equal(maps[0].source, maps[1].source)
    assert not torch.equal(maps[1].source, maps[2].source)
    assert torch.equal(maps[1].source, maps[3].source)


def test_top_keeps_a_share_of_each_sentence() -> None:
    trace = Trace(weights=False)
    encode("top", trace=trace)
    for step, share in zip(trace.reductions, (0.9, 0.6, 0.4), strict=True):
        assert step.real.sum(1).tolist() == [round(int(length) * share) for length in LENGTHS]


@norms
@pytest.mark.parametrize("seed", range(10))
def test_a_cold_soft_mask_is_a_removal_in_every_layer(norm: str, seed: int) -> None:
    thresholds, trace = [0.9, 1.0, 1.1], Trace(weights=False)
    x, mask = tokens(seed)
    hard = encoder_of(Pruning(thresholds), norm=norm)(x, mask, trace)
    soft = encoder_of(SoftPruning(thresholds, 1e-9, 0.1), norm=norm)(x, mask)
    real = mask[:, 0, 0]
    removed = [int((real & (step.source < 0)).sum()) for step in trace.reductions]
    assert 0 < removed[0] < removed[1] < removed[2]
    stays = trace.reductions[-1].source >= 0
    close(sizes_of(soft), stays.double() + (real & ~stays) * FLOOR)
    close(soft.states[stays], hard.states[real_of(hard)], 1e-4)


def test_thresholds_learn_from_the_states_and_from_their_cost() -> None:
    plan = SoftPruning([0.8, 0.9, 1.0], 0.1, 0.3)
    trace = Trace(weights=False)
    memory = encoder_of(plan)(*tokens(), trace)
    real = real_of(memory)
    (slope,) = torch.autograd.grad(memory.states[real].sum(), plan.thresholds, retain_graph=True)
    # The mask of the last layer acts on later layers alone.
    assert slope[:2].abs().min() > 0 and slope[2] == 0
    cost = plan.cost(trace.reductions)
    shares = [float((step.sizes.sum() / real.sum()).detach()) for step in trace.reductions]
    assert float(cost.detach()) == pytest.approx(0.3 * sum(shares) / 3)
    (slope,) = torch.autograd.grad(cost, plan.thresholds)
    assert slope.max() < 0  # a higher threshold keeps less
    assert Merging([1, 1, 1]).cost(trace.reductions) == 0.0
    assert not Pruning([0.1] * 3).thresholds.requires_grad


@pytest.mark.parametrize("name", ["bipartite", "neighbours", "thresholds", "top"])
def test_operations_are_those_that_torch_counts(name: str) -> None:
    encoder = encoder_of(PLANS[name](), inner=6)
    trace = Trace()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        encoder(tokens()[0][:1], None, trace)
    totals = operations(encoder, counts(torch.tensor([S]), trace.reductions), encoder.plan)
    assert len(totals) == LAYERS and totals[0] > totals[1] > totals[2]
    assert sum(totals) == counter.get_total_flops()


@pytest.mark.parametrize("score", ["dot", "bilinear", "projected", "additive"])
def test_operations_count_the_matrices_of_other_scores(score: str) -> None:
    stack = layers(inner=6, score=score)
    x = tokens()[0][:1]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for layer in stack:
            layer(x)
    totals = operations(stack, [torch.tensor([S])] * (LAYERS + 1))
    assert sum(totals) == counter.get_total_flops()


def test_operations_do_not_count_padding() -> None:
    def total(lengths: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        encoder, trace = encoder_of(PLANS["top"]()), Trace(weights=False)
        encoder(x, mask, trace)
        return torch.tensor(operations(encoder, counts(lengths, trace.reductions)))

    x, mask = tokens()
    alone = [
        total(LENGTHS[b : b + 1], x[b : b + 1, :length], mask[b : b + 1, ..., :length])
        for b, length in enumerate(LENGTHS.tolist())
    ]
    assert torch.equal(total(LENGTHS, x, mask), torch.stack(alone).sum(0))
