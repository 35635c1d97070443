"""What an encoder's layers do with their tokens: merge some or remove some, which, and how many in each layer.

A plan is told what the attention of a layer saw, and gives a Reduction. Shapes: B batch, S tokens, D model width,
K head size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.layers.reduction.merging import (
    Maybe,
    Reduction,
    bipartite,
    neighbours,
    schedule,
    size_bias,
)
from seq2see.layers.reduction.pruning import kept_share, prune_below, prune_softly, prune_to
from seq2see.recipe.schema import ReduceConfig

MATCHINGS = {"bipartite": bipartite, "neighbours": neighbours}
PerLayer = float | Sequence[float]


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
        return (
            None if bool((self.sizes == self.real).all()) else size_bias(self.sizes, self.real)
        )  # (B, 1, 1, S)

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
        return Tokens(
            step.merge(self.states), step.real, step.any(self.protected), step.sizes, self.first
        )


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
        return (
            2 * size * half * (count - half) if self.r[layer] and self.match is bipartite else 0.0
        )

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
        raise ValueError(
            f"{name} {list(values)} must be one number, or one for each of {layers} layers"
        )
    return list(values)
