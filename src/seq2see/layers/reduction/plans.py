"""Reduction plans: which tokens an encoder merges or prunes in each layer, and how many.

A plan sees the keys of a layer, or the attention its tokens received, and returns a Reduction.
Shapes: B batch, S tokens, D model width, K head size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.layers.reduction.merging import bipartite, neighbours, schedule, size_bias
from seq2see.layers.reduction.pruning import kept_share, prune_below, prune_softly, prune_to
from seq2see.layers.reduction.reduction import Maybe, Reduction
from seq2see.recipe.schema import ReduceConfig

MATCHINGS = {"bipartite": bipartite, "neighbours": neighbours}
PerLayer = float | Sequence[float]


@dataclass(frozen=True)
class Tokens:
    """Token states and masks between two layers of a reducing encoder."""

    states: Tensor  # (B, S, D)
    real: Tensor  # (B, S) bool, False at padding
    protected: Tensor  # (B, S) bool: class, begin and end tokens, which stay as they are
    sizes: Tensor  # (B, S) the number of original tokens that each stands for
    first: Tensor  # (B,) the number of tokens before the first layer

    @property
    def mask(self) -> Tensor:
        return self.real[:, None, None]  # (B, 1, 1, S)

    @property
    def bias(self) -> Maybe:
        """log size (B, 1, 1, S), which makes a token count as several; None if all sizes are 1."""
        if bool((self.sizes == self.real).all()):
            return None
        return size_bias(self.sizes, self.real)

    @property
    def constraints(self) -> dict[str, Tensor]:
        """The keyword arguments that every matching and pruning function takes."""
        return {"real": self.real, "protected": self.protected, "sizes": self.sizes}

    @property
    def lengths(self) -> Tensor:
        """Sentence lengths (B,) up to the last real token, at least 1."""
        position = torch.arange(1, self.real.shape[1] + 1, device=self.real.device)
        return (self.real * position).amax(1).clamp(min=1)

    def after(self, step: Reduction) -> "Tokens":
        """The tokens that remain after a reduction."""
        states = step.merge(self.states)
        return Tokens(states, step.real, step.any(self.protected), step.sizes, self.first)


class Plan(nn.Module):
    """Reduction of the tokens in each layer of an encoder."""

    def needs_weights(self, layer: int) -> bool:
        """Whether the plan needs attention weights; if not, the layer can use the fused kernel."""
        return False

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        """Reduce the tokens of a layer.

        `received` is the attention they received (B, S), if the plan needs weights; `key` is the
        mean of their keys over all heads (B, S, K), otherwise.
        """
        raise NotImplementedError

    def cost(self, reductions: Sequence[Reduction]) -> Tensor | float:
        """Penalty that training adds to the loss of each target token."""
        return 0.0

    def operations(self, layer: int, count: Tensor, size: int) -> Tensor | float:
        """Operations of the plan's own matrix products for `count` (B,) tokens, keys of `size`."""
        return 0.0

    def hard(self) -> "Plan":
        """The plan for inference, which removes tokens instead of reducing their weight."""
        return self


class Merging(Plan):
    """Merge r tokens per layer into those most similar to them (ToMe).

    With a seed, merge random ones instead, as a baseline.
    """

    def __init__(self, r: Sequence[int], match: str = "bipartite", seed: int | None = None) -> None:
        super().__init__()
        self.r = r
        self.match = MATCHINGS[match]
        self.seed = seed

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        assert key is not None
        if self.seed is not None:
            key = (_random(key, self.seed, layer) - 0.5).expand_as(key)
        return self.match(key, self.r[layer], **tokens.constraints)

    def operations(self, layer: int, count: Tensor, size: int) -> Tensor | float:
        if not self.r[layer] or self.match is not bipartite:
            return 0.0
        half = count.div(2, rounding_mode="floor")
        return 2 * size * half * (count - half)

    def extra_repr(self) -> str:
        return f"r={list(self.r)}, match={self.match.__name__!r}"


class Pruning(Plan):
    """Remove the tokens that receive less attention than the threshold of their layer (LTP).

    The paper's thresholds are shares of all attention. Here 1 is an even share, so that one
    threshold suits short and long sentences.
    """

    def __init__(self, thresholds: Sequence[float]) -> None:
        super().__init__()
        # A parameter, so that learned thresholds are saved with the model.
        self.thresholds = nn.Parameter(torch.tensor(list(thresholds)), requires_grad=False)

    def needs_weights(self, layer: int) -> bool:
        return float(self.thresholds[layer]) > 0  # no attention is below 0

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        scores = tokens.sizes if received is None else received
        return prune_below(scores, self.thresholds[layer], **tokens.constraints)

    def extra_repr(self) -> str:
        values = ", ".join(f"{threshold:.4g}" for threshold in self.thresholds.tolist())
        return f"thresholds=[{values}]"


class SoftPruning(Pruning):
    """Learn the thresholds: tokens with little attention count less (LTP, section 3.3).

    The paper multiplies a layer's output by the soft mask m, which the next norm of a pre-norm
    layer would undo. Here a token counts as m tokens: log m is added to its attention scores, which
    for m → 0 removes it.
    """

    def __init__(self, thresholds: Sequence[float], temperature: float, penalty: float) -> None:
        super().__init__(thresholds)
        self.thresholds.requires_grad_()
        self.temperature = temperature
        self.penalty = penalty

    def needs_weights(self, layer: int) -> bool:
        return True

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        assert received is not None
        threshold = self.thresholds[layer]
        return prune_softly(received, threshold, self.temperature, **tokens.constraints)

    def cost(self, reductions: Sequence[Reduction]) -> Tensor:
        """λ times the share of tokens kept, averaged over the layers."""
        shares = [kept_share(reduction.sizes, reduction.real) for reduction in reductions]
        return self.penalty * torch.stack(shares).mean()

    def hard(self) -> Plan:
        return Pruning(self.thresholds.tolist())


class TopPruning(Plan):
    """Keep a share of the sentence after each layer: the tokens that receive the most attention.

    With a seed, keep random ones instead, as a baseline.
    """

    def __init__(self, shares: Sequence[float], seed: int | None = None) -> None:
        super().__init__()
        self.shares = shares
        self.seed = seed

    def needs_weights(self, layer: int) -> bool:
        return self.seed is None and self.shares[layer] < 1

    def forward(self, layer: int, tokens: Tokens, key: Maybe, received: Maybe) -> Reduction:
        if self.seed is not None:
            assert key is not None
            scores = _random(key, self.seed, layer)[:, 0].expand_as(tokens.sizes)
        else:
            scores = tokens.sizes if received is None else received
        top = (tokens.first * self.shares[layer]).round().long().clamp(min=1)  # (B,)
        return prune_to(scores, top, **tokens.constraints)

    def extra_repr(self) -> str:
        return f"shares={list(self.shares)}"


def _random(key: Tensor, seed: int, layer: int) -> Tensor:
    """Uniform numbers (S, K) for key (B, S, K), the same for every sentence of any batch."""
    generator = torch.Generator().manual_seed(seed << 8 | layer)
    return torch.rand(key.shape[1:], generator=generator).to(key)


def plan_of(config: ReduceConfig, layers: int) -> Plan | None:
    """The plan that the [reduce] table of a recipe describes, if any."""
    if config.kind == "merge":
        return Merging(schedule(config.r, layers, config.schedule), config.match)
    if config.kind == "none":
        return None
    if config.mode == "top":
        return TopPruning(falling(config.keep, layers))
    if config.mode == "soft":
        return SoftPruning(rising(config.thresholds, layers), config.temperature, config.penalty)
    return Pruning(rising(config.thresholds, layers))


def rising(thresholds: PerLayer, layers: int) -> list[float]:
    """Thresholds per layer; a single one is that of the last layer (LTP, section 4.1)."""
    _check_numbers("thresholds", thresholds)
    if isinstance(thresholds, (int, float)):
        return [thresholds * (layer + 1) / layers for layer in range(layers)]
    return _per_layer("thresholds", thresholds, layers)


def falling(shares: PerLayer, layers: int) -> list[float]:
    """Shares kept per layer; a single one is that of the last layer, reached linearly."""
    _check_numbers("shares", shares)
    if isinstance(shares, (int, float)):
        return [1 - (1 - shares) * (layer + 1) / layers for layer in range(layers)]
    return _per_layer("shares", shares, layers)


def _check_numbers(name: str, values: PerLayer) -> None:
    for value in [values] if isinstance(values, (int, float)) else values:
        if not value >= 0:  # also refuses NaN
            raise InputError(f"{name} of tokens to prune: {value} must be a number of at least 0")


def _per_layer(name: str, values: Sequence[float], layers: int) -> list[float]:
    if len(values) != layers:
        rule = f"must be one number, or one for each of {layers} layers"
        raise ValueError(f"{name} {list(values)} {rule}")
    return list(values)
