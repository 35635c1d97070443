"""An encoder around an encoder: its sequences get shorter from layer to layer.

After the attention of each layer a plan merges or prunes tokens; the feed-forward and all later
layers work on those that are left. Shapes: B batch, S tokens, D model width, K head size.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.layers.attention import Maybe
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
from seq2see.layers.reduction.reduction import Reduction
from seq2see.layers.shapes import PADDED, Rows
from seq2see.layers.trace import Trace, at, keep, wanted
from seq2see.models.parts import Encoder, Memory

Network = TypeVar("Network", bound=nn.Module)

WEIGHTS_IN_CACHE = 1 << 20


class ReducedEncoder(nn.Module):
    """The layers of an encoder, with fewer tokens after each as the plan says."""

    def __init__(self, layers: Iterable[nn.Module], special: str | None, plan: Plan) -> None:
        super().__init__()
        for i, layer in enumerate(layers):
            self.add_module(str(i), layer)  # weights are named as in the plain encoder
        self.special = special
        self.plan = plan

    def __len__(self) -> int:
        return len(self._modules) - 1

    def __iter__(self) -> Iterator[Any]:
        return (module for module in self.children() if module is not self.plan)

    def forward(
        self, x: Tensor, mask: Maybe = None, trace: Trace | None = None, rows: Rows = PADDED
    ) -> Memory:
        tokens = self._tokens(rows.pad(x), mask)
        origin: Reduction | None = None
        for i, layer in enumerate(self):
            x, key, attention = self._attend(i, layer, tokens, at(trace, f"encoder.{i}"))
            step = self.plan(i, tokens, key, attention)
            tokens = replace(tokens, states=x).after(step)
            tokens = replace(tokens, states=_transform(layer, tokens, step))
            if trace is not None:
                origin = step if origin is None else origin.then(step)
                trace.reductions.append(origin)
        return Memory(tokens.states, tokens.mask, tokens.bias, tokens.sizes)

    def _tokens(self, x: Tensor, mask: Maybe) -> Tokens:
        """Begin with every real token; the special one is neither merged nor pruned."""
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        if mask is not None:
            real = mask[:, 0, 0]
        protected = torch.zeros_like(real)
        if self.special is not None:
            count = real.cumsum(1)
            protected = real & (count == (1 if self.special == "first" else count[:, -1:]))
        return Tokens(x, real, protected, real.to(x.dtype), real.sum(1))

    def _attend(
        self, i: int, layer: EncoderLayer, tokens: Tokens, trace: Trace | None
    ) -> tuple[Tensor, Maybe, Maybe]:
        """Apply self-attention: states (B, S, D), keys (B, S, K), attention received (B, S)."""
        needed = self.plan.needs_weights(i)
        if needed and tokens.states.device.type == "cpu" and not wanted(trace):
            x, attention = _attend_in_parts(layer, tokens)
            return x, None, attention
        mask = None if bool(tokens.real.all()) else tokens.mask
        need_weights = needed or wanted(trace)
        x, keys, weights = _attend_to_self(layer, tokens.states, mask, tokens.bias, need_weights)
        keep(trace, "self", weights)
        if weights is None or not needed:
            return x, keys.mean(1), None
        return x, keys.mean(1), received(weights, tokens.sizes)


def _attend_to_self(
    layer: EncoderLayer, x: Tensor, mask: Maybe, bias: Maybe, need_weights: bool
) -> tuple[Tensor, Tensor, Maybe]:
    """Apply the first sublayer; return its keys (B, H, S, K) and weights, too."""
    y = layer.self_residual.before(x)
    pair = replace(layer.self_attention.project(y, y), mask=mask, bias=bias)
    y, weights = layer.self_attention(y, pair, need_weights=need_weights)
    return layer.self_residual.after(x, y), pair.keys, weights


def _attend_in_parts(layer: EncoderLayer, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """Apply self-attention to a few sentences of similar length at a time."""
    mask = None if bool(tokens.real.all()) else tokens.mask
    bias = tokens.bias
    x = torch.zeros_like(tokens.states)
    attention = torch.zeros_like(tokens.sizes)
    for rows, length in _by_length(tokens, layer.self_attention.heads):
        part = (rows, slice(length))
        keys = (rows, ..., slice(length))
        states, _, weights = _attend_to_self(
            layer,
            tokens.states[part],
            None if mask is None else mask[keys],
            None if bias is None else bias[keys],
            True,
        )
        assert weights is not None
        x[part] = states
        attention[part] = received(weights, tokens.sizes[part])
    return x, attention


def _by_length(tokens: Tokens, heads: int) -> list[tuple[Tensor | slice, int]]:
    """Group sentences of similar length, with the longest length of each group.

    The weights of a group fit into the processor's cache, where summing them up is cheap, and
    sentences that have lost many tokens are not padded to those that have lost few.
    """
    lengths, order = tokens.lengths.sort(descending=True, stable=True)
    equal = len(set(lengths.tolist())) == 1
    groups: list[tuple[Tensor | slice, int]] = []
    start = 0
    while start < len(order):
        longest = int(lengths[start])
        end = start + max(1, WEIGHTS_IN_CACHE // (heads * longest**2))
        groups.append(
            (slice(start, end) if equal else order[start:end], longest)
        )  # slices are views
        start = end
    return groups


def _transform(layer: EncoderLayer, tokens: Tokens, step: Reduction) -> Tensor:
    """Apply the feed-forward network, to real tokens alone once sentences differ in length."""
    if step.unchanged or bool(tokens.real.all()):
        return layer.transform(tokens.states)
    real = layer.transform(tokens.states[tokens.real])
    return tokens.states.index_put((tokens.real,), real)


def reducible(model: object) -> bool:
    """Whether the model has an encoder whose tokens may be merged or pruned."""
    return isinstance(getattr(model, "encoder", None), (Encoder, ReducedEncoder))


def plan_of(model: nn.Module) -> Plan | None:
    """The plan of the model's encoder, if it has one."""
    encoder = getattr(model, "encoder", None)
    return encoder.plan if isinstance(encoder, ReducedEncoder) else None


def with_plan(model: Network, plan: Plan | None) -> Network:
    """Copy a model, sharing its weights, with an encoder that follows another plan, or none."""
    encoder: Any = getattr(model, "encoder", None)
    if not reducible(model):
        raise InputError(f"{type(model).__name__} has no encoder that could merge or prune tokens")
    if plan is not None and any(layer.self_attention.rotary is not None for layer in encoder):
        raise InputError(
            "rotary positions need every token; an encoder that has them cannot reduce"
        )
    copied: Any = copy.copy(model)
    copied._modules = dict(model._modules)  # or the original would get the new encoder, too
    if plan is None:
        copied.encoder = Encoder(encoder, encoder.special)
    else:
        weight = next(model.parameters())
        copied.encoder = ReducedEncoder(encoder, encoder.special, plan.to(weight))
    copied.encoder.train(model.training)
    return copied  # type: ignore[no-any-return]


def with_merging(
    model: Network,
    r: int | Sequence[int] = 8,
    kind: str = "constant",
    match: str = "bipartite",
    seed: int | None = None,
) -> Network:
    """Copy a model, sharing its weights, that merges r tokens in each layer of its encoder."""
    return with_plan(model, Merging(schedule(r, layers_of(model), kind), match, seed))


def with_pruning(model: Network, thresholds: PerLayer) -> Network:
    """Copy a model, sharing its weights, that prunes tokens below the threshold of each layer.

    A single threshold is that of the last layer, to which the others rise.
    """
    return with_plan(model, Pruning(rising(thresholds, layers_of(model))))


def with_top(model: Network, shares: PerLayer, seed: int | None = None) -> Network:
    """Copy a model, sharing its weights, that keeps a share of the tokens after each layer.

    A single share is that of the last layer, to which the others fall.
    """
    return with_plan(model, TopPruning(falling(shares, layers_of(model)), seed))


def layers_of(model: nn.Module) -> int:
    """Number of encoder layers that could reduce tokens."""
    encoder = getattr(model, "encoder", None)
    return len(encoder) if isinstance(encoder, (Encoder, ReducedEncoder)) else 1


def reduction_trace(model: nn.Module) -> Trace | None:
    """A trace for `reduction_cost` to read after the forward pass, if the model has a plan."""
    return None if plan_of(model) is None else Trace(weights=False)


def reduction_cost(model: nn.Module, trace: Trace | None) -> Tensor | float:
    """The term that the model's plan adds to the loss of each target."""
    plan = plan_of(model)
    return 0.0 if plan is None or trace is None else plan.cost(trace.reductions)


def counts(first: Tensor, reductions: Sequence[Reduction]) -> list[Tensor]:
    """Count the real tokens (B,) of each sentence: `first` of them, then those after each layer."""
    return [first, *(reduction.real.sum(1) for reduction in reductions)]


def operations(
    layers: Iterable[EncoderLayer], counts: Sequence[Tensor], plan: Plan | None = None
) -> list[float]:
    """Count the multiplications and additions of each layer's matrix products.

    All n tokens before a layer are projected and attend to each other, the plan matches them, and
    the tokens left after it go through the feed-forward network. Padding is not counted.
    """
    totals = []
    for i, (layer, before, after) in enumerate(zip(layers, counts[:-1], counts[1:], strict=True)):
        attention, feed_forward, n = layer.self_attention, layer.feed_forward, before.double()
        projections = (attention.query, attention.key, attention.value, attention.output)
        attending = 2 * sum(linear.weight.numel() for linear in projections) * n
        attending += 4 * attention.output.in_features * n**2
        if isinstance(attention.score, nn.Module):
            # Its matrices; its vector takes what the product of a pair would.
            named = attention.score.named_parameters()
            attending += 2 * n * sum(weight.numel() for name, weight in named if name != "vector")
        attending += 0.0 if plan is None else plan.operations(i, n, attention.size)
        weights = feed_forward.expand.weight.numel() + feed_forward.contract.weight.numel()
        totals.append(float((attending + 2 * weights * after).sum()))
    return totals
