"""An encoder whose layers go on with fewer and fewer tokens: they are merged or pruned after each layer's attention.

A plan says which. It is told what the attention saw, and gives a Reduction; the feed-forward and all that follows work
on what is left. Shapes: B batch, S tokens, D model width, H heads, K head size.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from seq2see.config import ReduceConfig
from seq2see.errors import InputError
from seq2see.layers.blocks import EncoderLayer
from seq2see.layers.prune import kept_share, prune_below, prune_softly, prune_to, received
from seq2see.layers.reduce import Maybe, Reduction, bipartite, neighbours, schedule, size_bias
from seq2see.layers.trace import Trace, keep, wanted

MATCHINGS = {"bipartite": bipartite, "neighbours": neighbours}
PerLayer = float | Sequence[float]
WEIGHTS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Tokens:
    """What is left of each sentence on its way through the layers."""

    states: Tensor  # (B, S, D)
    real: Tensor  # (B, S) bool, False at padding
    protected: Tensor  # (B, S) bool: class, begin and end stay as they are
    sizes: Tensor  # (B, S): how many of the first tokens each counts for
    first: Tensor  # (B,): how many there were

    @property
    def mask(self) -> Tensor:
        return self.real[:, None, None]  # (B, 1, 1, S)

    @property
    def bias(self) -> Maybe:
        """log size, which makes one token count as several; nothing while each counts as one."""
        return None if bool((self.sizes == self.real).all()) else size_bias(self.sizes, self.real)  # (B, 1, 1, S)

    @property
    def known(self) -> dict[str, Tensor]:
        """What whoever merges or prunes must respect."""
        return {"real": self.real, "protected": self.protected, "sizes": self.sizes}

    @property
    def lengths(self) -> Tensor:
        """How far each sentence (B,) reaches, its last real token included; at least 1."""
        place = torch.arange(1, self.real.shape[1] + 1, device=self.real.device)
        return (self.real * place).amax(1).clamp(min=1)

    def after(self, step: Reduction) -> "Tokens":
        return Tokens(step.merge(self.states), step.real, step.any(self.protected), step.sizes, self.first)


class Plan(nn.Module):
    """What each layer does with its tokens."""

    def needs_weights(self, layer: int) -> bool:
        """Whether it must know who looked at whom; without, a fused kernel serves."""
        return False

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        """Where the tokens go, by the attention they got (B, S), if it needs weights; else by keys (B, S, K), the mean
        of all heads."""
        raise NotImplementedError

    def cost(self, reductions: Sequence[Reduction]) -> Tensor | float:
        """What training adds to the loss of a target token."""
        return 0.0

    def operations(self, layer: int, count: Tensor, size: int) -> Tensor | float:
        """Of the matrix products that find out where so many tokens (B,) with keys of this size go."""
        return 0.0

    def hard(self) -> "Plan":
        """The same with nothing left to learn: tokens are there or not."""
        return self


class Merging(Plan):
    """In each layer r tokens join those that they are most like (ToMe). With a seed any others: to compare with."""

    def __init__(self, r: Sequence[int], match: str = "bipartite", seed: int | None = None) -> None:
        super().__init__()
        self.r, self.match, self.seed = r, MATCHINGS[match], seed

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        assert key is not None
        if self.seed is not None:
            key = (_drawn(key, self.seed, layer) - 0.5).expand_as(key)
        return self.match(key, self.r[layer], **tokens.known)

    def operations(self, layer: int, count: Tensor, size: int) -> Tensor | float:
        half = count.div(2, rounding_mode="floor")
        return 2 * size * half * (count - half) if self.r[layer] and self.match is bipartite else 0.0

    def extra_repr(self) -> str:
        return f"r={list(self.r)}, match={self.match.__name__!r}"


class Pruning(Plan):
    """In each layer the tokens go that get less attention than its threshold (LTP): not merely hidden, but removed.

    The paper's thresholds are shares of all attention. Here 1 is an even share, so that one serves short and long.
    """

    def __init__(self, thresholds: Sequence[float]) -> None:
        super().__init__()
        # They are weights, so that those which were learned come with the model.
        self.thresholds = nn.Parameter(torch.tensor(list(thresholds)), requires_grad=False)

    def needs_weights(self, layer: int) -> bool:
        return float(self.thresholds[layer]) > 0  # nothing is below 0

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        scores = tokens.sizes if received is None else received
        return prune_below(scores, self.thresholds[layer], **tokens.known)

    def extra_repr(self) -> str:
        return f"thresholds=[{', '.join(f'{each:.4g}' for each in self.thresholds.tolist())}]"


class SoftPruning(Pruning):
    """Thresholds while they are learned: the less attention a token gets, the less it counts (LTP, section 3.3).

    The paper multiplies a layer's output with the soft mask m. The norm of a pre-norm layer would undo that, so here
    a token counts as m tokens: log m is added to its scores, and with m → 0 it is as good as removed.
    """

    def __init__(self, thresholds: Sequence[float], temperature: float, penalty: float) -> None:
        super().__init__(thresholds)
        self.thresholds.requires_grad_()
        self.temperature, self.penalty = temperature, penalty

    def needs_weights(self, layer: int) -> bool:
        return True

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        assert received is not None
        return prune_softly(received, self.thresholds[layer], self.temperature, **tokens.known)

    def cost(self, reductions: Sequence[Reduction]) -> Tensor:
        """λ times the share of the tokens that is kept, averaged over the layers."""
        shares = [kept_share(each.sizes, each.real) for each in reductions]
        return self.penalty * torch.stack(shares).mean()

    def hard(self) -> Plan:
        return Pruning(self.thresholds.tolist())


class TopPruning(Plan):
    """After each layer a share of the sentence is left: what gets the most attention, or with a seed anything."""

    def __init__(self, shares: Sequence[float], seed: int | None = None) -> None:
        super().__init__()
        self.shares, self.seed = shares, seed

    def needs_weights(self, layer: int) -> bool:
        return self.seed is None and self.shares[layer] < 1

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        if self.seed is not None:
            assert key is not None
            scores = _drawn(key, self.seed, layer)[:, 0].expand_as(tokens.sizes)
        else:
            scores = tokens.sizes if received is None else received
        top = (tokens.first * self.shares[layer]).round().long().clamp(min=1)  # (B,)
        return prune_to(scores, top, **tokens.known)

    def extra_repr(self) -> str:
        return f"shares={list(self.shares)}"


def _drawn(key: Tensor, seed: int, layer: int) -> Tensor:
    """Numbers from 0 to 1 for each place of key (B, S, K), the same in every sentence: companions have no say."""
    generator = torch.Generator().manual_seed(seed << 8 | layer)
    return torch.rand(key.shape[1:], generator=generator).to(key)  # (S, K)


def through(
    layers: Sequence[EncoderLayer], x: Tensor, real: Tensor, plan: Plan, protected: Tensor, trace: Trace | None = None
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
            x, key, got = _look(layer, tokens, needed, None if trace is None else trace.at(f"encoder.{i}"))
        step = plan(i, tokens, key, got)
        tokens = replace(tokens, states=x).after(step)
        tokens = replace(tokens, states=_transform(layer, tokens, step))
        if trace is not None:
            origin = step if origin is None else origin.then(step)
            trace.reductions.append(origin)
    return tokens


def _look(layer: EncoderLayer, tokens: Tokens, needed: bool, trace: Trace | None) -> tuple[Tensor, Tensor, Maybe]:
    """The layer's attention: states (B, S, D) after it, keys (B, S, K), attention received (B, S) if needed."""
    see, mask = needed or wanted(trace), None if bool(tokens.real.all()) else tokens.mask
    x, (key, _), weights = layer.look(tokens.states, None, mask, bias=tokens.bias, need_weights=see)
    keep(trace, "self", weights)
    return x, key.mean(1), received(weights, tokens.sizes) if needed and weights is not None else None


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
        self, r: int | Sequence[int] = 8, kind: str = "constant", match: str = "bipartite", seed: int | None = None
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
        if plan is not None and any(layer.self_attention.rotary is not None for layer in self.encoder):
            raise InputError("rotary positions are counted anew in each layer; with fewer tokens they would be wrong")
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


def plan_of(config: ReduceConfig, layers: int) -> Plan | None:
    """What the [reduce] of a recipe says."""
    if config.kind == "merge":
        return Merging(schedule(config.r, layers, config.schedule), config.match)
    if config.kind == "prune" and config.mode == "top":
        return TopPruning(falling(config.keep, layers))
    if config.kind == "prune" and config.mode == "soft":
        return SoftPruning(rising(config.thresholds, layers), config.temperature, config.penalty)
    return Pruning(rising(config.thresholds, layers)) if config.kind == "prune" else None


def rising(thresholds: PerLayer, layers: int) -> list[float]:
    """As given, or rising evenly to the one of the last layer (LTP, section 4.1)."""
    _check_numbers("thresholds", thresholds)
    if isinstance(thresholds, (int, float)):
        return [thresholds * (layer + 1) / layers for layer in range(layers)]
    return _one_each("thresholds", thresholds, layers)


def falling(shares: PerLayer, layers: int) -> list[float]:
    """As given, or falling evenly to the one of the last layer."""
    _check_numbers("shares", shares)
    if isinstance(shares, (int, float)):
        return [1 - (1 - shares) * (layer + 1) / layers for layer in range(layers)]
    return _one_each("shares", shares, layers)


def _check_numbers(name: str, values: PerLayer) -> None:
    for each in [values] if isinstance(values, (int, float)) else values:
        if not each >= 0:  # nan is not, either
            raise InputError(f"{name} of tokens to prune: {each} must be a number of at least 0")


def _one_each(name: str, values: Sequence[float], layers: int) -> list[float]:
    if len(values) != layers:
        raise ValueError(f"{name} {list(values)} must be one number, or one for each of {layers} layers")
    return list(values)


def counts(first: Tensor, reductions: Sequence[Reduction]) -> list[Tensor]:
    """The real tokens (B,) of each sentence: before the layers, of which there were `first`, and after each."""
    return [first, *(reduction.real.sum(1) for reduction in reductions)]


def operations(layers: Sequence[EncoderLayer], counts: Sequence[Tensor], plan: Plan | None = None) -> list[float]:
    """Multiplications and additions of each layer's matrix products, by the tokens (B,) before it and after it.

    All n tokens are projected and look at each other, the plan looks for what is alike, then what is left goes through
    the feed-forward; an addition for each multiplication, none for padding.
    """
    found = []
    for i, (layer, before, after) in enumerate(zip(layers, counts[:-1], counts[1:], strict=True)):
        attention, forward, n = layer.self_attention, layer.feed_forward, before.double()
        projections = (attention.query, attention.key, attention.value, attention.output)
        looking = 2 * sum(each.weight.numel() for each in projections) * n + 4 * attention.output.in_features * n**2
        if isinstance(attention.score, nn.Module):  # its matrices; its vector takes what the product of a pair would
            own = dict(attention.score.named_parameters())
            looking += 2 * n * sum(each.numel() for name, each in own.items() if name != "vector")
        looking += 0.0 if plan is None else plan.operations(i, n, attention.size)
        thinking = 2 * (forward.expand.weight.numel() + forward.contract.weight.numel()) * after
        found.append(float((looking + thinking).sum()))
    return found
