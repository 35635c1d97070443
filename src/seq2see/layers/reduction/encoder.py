"""An encoder whose layers go on with fewer and fewer tokens: they are merged or pruned after each layer's attention.

A plan says which; the feed-forward and all that follows work on what is left. Shapes: B batch, S tokens, D model width,
K head size.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.layers.blocks import EncoderLayer
from seq2see.layers.reduction.merging import schedule
from seq2see.layers.reduction.plans import (
    Merging,
    PerLayer,
    Plan,
    Pruning,
    Tokens,
    TopPruning,
    falling,
    rising,
)
from seq2see.layers.reduction.pruning import received
from seq2see.layers.reduction.reduction import Maybe, Reduction
from seq2see.layers.trace import Trace, keep, wanted

WEIGHTS_AT_ONCE = 1 << 20


def through(
    layers: Sequence[EncoderLayer],
    x: Tensor,
    real: Tensor,
    plan: Plan,
    protected: Tensor,
    trace: Trace | None = None,
) -> Tokens:
    """What is left of x (B, S, D) behind all layers; `real` and `protected` are bool (B, S)."""
    tokens, origin = Tokens(x, real, protected, real.to(x.dtype), real.sum(1)), None
    for i, layer in enumerate(layers):
        needed = plan.needs_weights(i)
        key: Maybe = None
        got: Maybe = None
        if needed and x.device.type == "cpu" and not wanted(trace):
            x, got = _look_in_parts(layer, tokens)
        else:
            x, key, got = _look(
                layer, tokens, needed, None if trace is None else trace.at(f"encoder.{i}")
            )
        step = plan(i, tokens, key, got)
        tokens = replace(tokens, states=x).after(step)
        tokens = replace(tokens, states=_transform(layer, tokens, step))
        if trace is not None:
            origin = step if origin is None else origin.then(step)
            trace.reductions.append(origin)
    return tokens


def _look(
    layer: EncoderLayer, tokens: Tokens, needed: bool, trace: Trace | None
) -> tuple[Tensor, Tensor, Maybe]:
    """The layer's attention: states (B, S, D) after it, keys (B, S, K), attention received (B, S) if needed."""
    see, mask = needed or wanted(trace), None if bool(tokens.real.all()) else tokens.mask
    x, (key, _), weights = layer.look(tokens.states, None, mask, bias=tokens.bias, need_weights=see)
    keep(trace, "self", weights)
    return (
        x,
        key.mean(1),
        received(weights, tokens.sizes) if needed and weights is not None else None,
    )


def _look_in_parts(layer: EncoderLayer, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """States (B, S, D) after the layer's attention, and the attention received (B, S): of a few sentences at a time."""
    mask, bias = None if bool(tokens.real.all()) else tokens.mask, tokens.bias
    x, got = torch.zeros_like(tokens.states), torch.zeros_like(tokens.sizes)
    for rows, length in _alike(tokens, layer.self_attention.heads):
        here, there = (rows, slice(length)), (rows, ..., slice(length))
        states, _, weights = layer.look(
            tokens.states[here],
            None,
            None if mask is None else mask[there],
            bias=None if bias is None else bias[there],
            need_weights=True,
        )
        assert weights is not None
        x[here], got[here] = states, received(weights, tokens.sizes[here])
    return x, got


def _alike(tokens: Tokens, heads: int) -> list[tuple[Tensor | slice, int]]:
    """Sentences of like length and the longest of these: so few that their weights stay in the processor's cache.

    There the attention that each token gets can be summed up; and whoever lost much does not pay for who lost little.
    """
    lengths, order = tokens.lengths.sort(descending=True, stable=True)
    found, start, even = list[tuple[Tensor | slice, int]](), 0, len({*lengths.tolist()}) == 1
    while start < len(order):
        longest = int(lengths[start])
        end = start + max(1, WEIGHTS_AT_ONCE // (heads * longest**2))
        rows = slice(start, end) if even else order[start:end]  # a slice need not be copied
        found.append((rows, longest))
        start = end
    return found


def _transform(layer: EncoderLayer, tokens: Tokens, step: Reduction) -> Tensor:
    """The layer's feed-forward: once sentences have lost more or fewer tokens, only for those that are left."""
    if step.unchanged or bool(tokens.real.all()):
        return layer.transform(tokens.states)
    return tokens.states.index_put((tokens.real,), layer.transform(tokens.states[tokens.real]))


class Reducible(nn.Module):
    """A model with an `encoder` that may merge or prune: it follows its `plan`, if it has one."""

    encoder: Any
    plan: Any

    def with_merging(
        self,
        r: int | Sequence[int] = 8,
        kind: str = "constant",
        match: str = "bipartite",
        seed: int | None = None,
    ) -> Self:
        """This model, merging r tokens in each layer; it shares all weights, and this one stays as it is."""
        return self.with_plan(Merging(schedule(r, len(self.encoder), kind), match, seed))

    def with_pruning(self, thresholds: PerLayer) -> Self:
        """This model without the tokens below the thresholds: one per layer, or the last, to which they rise."""
        return self.with_plan(Pruning(rising(thresholds, len(self.encoder))))

    def with_top(self, shares: PerLayer, seed: int | None = None) -> Self:
        """This model with a share of the tokens left after each layer, or after the last, to which they fall."""
        return self.with_plan(TopPruning(falling(shares, len(self.encoder)), seed))

    def with_plan(self, plan: Plan | None) -> Self:
        """This model under another plan, or none."""
        if plan is not None and any(
            layer.self_attention.rotary is not None for layer in self.encoder
        ):
            raise InputError(
                "rotary positions are counted anew in each layer; with fewer tokens they would be wrong"
            )
        other = copy.copy(self)
        other._modules = dict(self._modules)  # or the plan would be this one's, too
        other.plan = None if plan is None else plan.to(next(self.parameters()))
        return other


def watch(model: nn.Module) -> Trace | None:
    """What a model that follows a plan is to tell of its tokens, so that `cost` can be known; nothing of others."""
    return Trace(weights=False) if isinstance(model, Reducible) and model.plan is not None else None


def cost(model: nn.Module, trace: Trace | None) -> Tensor | float:
    """What the plan of a model adds to the loss of a target token, by what it told in a forward pass."""
    if trace is None or not isinstance(model, Reducible):
        return 0.0
    found: Tensor | float = model.plan.cost(trace.reductions)
    return found


def counts(first: Tensor, reductions: Sequence[Reduction]) -> list[Tensor]:
    """The real tokens (B,) of each sentence: before the layers, of which there were `first`, and after each."""
    return [first, *(reduction.real.sum(1) for reduction in reductions)]


def operations(
    layers: Sequence[EncoderLayer], counts: Sequence[Tensor], plan: Plan | None = None
) -> list[float]:
    """Multiplications and additions of each layer's matrix products, by the tokens (B,) before it and after it.

    All n tokens are projected and look at each other, the plan looks for what is alike, then what is left goes through
    the feed-forward; an addition for each multiplication, none for padding.
    """
    found = []
    for i, (layer, before, after) in enumerate(zip(layers, counts[:-1], counts[1:], strict=True)):
        attention, forward, n = layer.self_attention, layer.feed_forward, before.double()
        projections = (attention.query, attention.key, attention.value, attention.output)
        looking = (
            2 * sum(each.weight.numel() for each in projections) * n
            + 4 * attention.output.in_features * n**2
        )
        if isinstance(
            attention.score, nn.Module
        ):  # its matrices; its vector takes what the product of a pair would
            own = dict(attention.score.named_parameters())
            looking += 2 * n * sum(each.numel() for name, each in own.items() if name != "vector")
        looking += 0.0 if plan is None else plan.operations(i, n, attention.size)
        thinking = 2 * (forward.expand.weight.numel() + forward.contract.weight.numel()) * after
        found.append(float((looking + thinking).sum()))
    return found
