"""A diffusion model around a diffusion model: similar positions of a picture attend as one.

Token merging for generation (Bolya and Hoffman, 2023): merge before self-attention, unmerge after.
Shapes: B batch, N positions, P places that are left, D width, H heads.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from seq2see.errors import InputError
from seq2see.layers.attention import Maybe
from seq2see.layers.reduction.merging import grid, size_bias
from seq2see.layers.reduction.reduction import Reduction
from seq2see.layers.shapes import PADDED, KeysValues, Rows
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import DiffusionModel, Grid, Place, Prompted
from seq2see.models.noise import keyed

METHODS = ("all", "keys")
CELL = 2  # one destination in each square of this many rows and columns
HIGHEST = 0.75  # the other positions of the cells


@dataclass(frozen=True)
class TokenMerging:
    """Settings for merging the positions of pictures in the attention of a diffusion model."""

    ratio: float = 0.5  # the share of positions that are merged into others; 0: none
    # all: merged positions attend and are copied to those they stand for; keys: only keys and
    # values are merged, so that every position still has its own query.
    method: str = "all"
    min_tokens: int = 256  # grids with fewer positions are left alone: little to save there
    every: int = 1  # steps of sampling for which a matching is used
    # Count a merged key as often as positions it stands for (ToMe, equation 1), so that merging
    # equal positions changes nothing. tomesd does not.
    proportional: bool = True
    cross: bool = False  # merge in the cross-attention to the prompt, too
    feed_forward: bool = False  # and in the feed-forward network
    seed: int = 1  # of the destinations, which are drawn anew for each matching

    def __post_init__(self) -> None:
        check(self.ratio, self.method)
        for name, value in (("min_tokens", self.min_tokens), ("every", self.every)):
            if value < 1:
                raise InputError(f"{name} ({value}) must be at least 1")


def check(ratio: float, method: str) -> None:
    """Check the settings that every kind of merging has."""
    if not 0 <= ratio <= HIGHEST:
        raise InputError(f"ratio ({ratio}) must be between 0 and {HIGHEST}")
    if method not in METHODS:
        raise InputError(f"method {method!r} is not one of {', '.join(METHODS)}")


def match(x: Tensor, shape: Grid, ratio: float, key: str) -> Reduction:
    """Match positions by their states x (B, N, D); the key decides the destination of each cell."""
    height, width = shape
    cell = (min(CELL, height), min(CELL, width))
    return grid(x, int(ratio * height * width), shape, cell=cell, generator=keyed(key))


class Matching:
    """The matching of one layer in one run of sampling, made anew every so many steps."""

    def __init__(self, merging: TokenMerging, name: str, shape: Grid) -> None:
        self.merging = merging
        self.name = name
        self.shape = shape
        self.steps = 0
        self.reduction: Reduction | None = None

    def step(self, x: Tensor) -> Reduction:
        """Match the positions of x (B, N, D), or return the earlier matching."""
        if self.reduction is None or self.steps % self.merging.every == 0:
            key = f"merge/{self.merging.seed}/{self.name}/{self.steps}"
            self.reduction = match(x, self.shape, self.merging.ratio, key)
        self.steps += 1
        return self.reduction

    @property
    def current(self) -> Reduction:
        """The matching of this step, which self-attention, the first sublayer, has made."""
        assert self.reduction is not None
        return self.reduction


class MergedAttention(nn.Module):
    """Self-attention among merged positions."""

    def __init__(self, inner: nn.Module, matching: Matching) -> None:
        super().__init__()
        self.inner = inner
        self.matching = matching

    @property
    def query(self) -> nn.Module:
        """The projection by which a layer knows its width."""
        return self.inner.query  # type: ignore[return-value]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Maybe = None,
        mask: Maybe = None,
        *,
        cache: KeysValues | None = None,
        rows: Rows = PADDED,
        need_weights: bool = False,
    ) -> tuple[Tensor, Maybe]:
        """query (B, N, D) → (B, N, D) and weights (B, H, N, N); pictures have no mask or cache."""
        reduction = self.matching.step(query)
        merging = self.matching.merging
        x = reduction.merge(query)  # (B, P, D)
        bias = size_bias(reduction.sizes) if merging.proportional else None
        all_merged = merging.method == "all"
        y, weights = self.inner(x if all_merged else query, x, bias=bias, need_weights=need_weights)
        if weights is not None:
            weights = reduction.on_tokens(weights, queries=all_merged)
        return reduction.unmerge(y) if all_merged else y, weights


class MergedCrossAttention(nn.Module):
    """Cross-attention of merged positions."""

    def __init__(self, inner: nn.Module, matching: Matching) -> None:
        super().__init__()
        self.inner = inner
        self.matching = matching

    def forward(
        self, query: Tensor, memory: KeysValues, *, rows: Rows = PADDED, need_weights: bool = False
    ) -> tuple[Tensor, Maybe]:
        """query (B, N, D) → (B, N, D) and weights (B, H, N, S)."""
        reduction = self.matching.current
        y, weights = self.inner(reduction.merge(query), memory, need_weights=need_weights)
        if weights is not None:
            weights = reduction.unmerge(weights.transpose(1, 2).contiguous()).transpose(1, 2)
        return reduction.unmerge(y), weights


class MergedFeedForward(nn.Module):
    """The feed-forward network on merged positions."""

    def __init__(self, inner: nn.Module, matching: Matching) -> None:
        super().__init__()
        self.inner = inner
        self.matching = matching

    def forward(self, x: Tensor) -> Tensor:
        reduction = self.matching.current
        return reduction.unmerge(self.inner(reduction.merge(x)))


@dataclass(frozen=True)
class Run:
    """Prompts, and a copy of the model that keeps the matchings of one run of sampling."""

    prompted: Prompted
    model: nn.Module
    matchings: Mapping[str, Matching]  # by the name of the layer


class MergedDiffusion(nn.Module):
    """A diffusion model, whose weights it shares, that merges positions as told.

    `read` begins a run of sampling, with matchings of its own, and `forward` is a step of it.
    """

    def __init__(self, model: DiffusionModel, merging: TokenMerging) -> None:
        super().__init__()
        self.model = model
        self.merging = merging
        self.shape = model.shape

    def places(self) -> dict[str, Place]:
        """The layers with attention, merged or not, by name."""
        return self.model.places()

    def merged(self) -> dict[str, Place]:
        """The layers that merge, by name."""
        if self.merging.ratio == 0:
            return {}
        return {
            name: place
            for name, place in self.places().items()
            if place.grid[0] * place.grid[1] >= self.merging.min_tokens
        }

    def read(self, prompts: Tensor, trace: Trace | None = None) -> Run:
        """Encode prompt ids (B, S) as the model does, for one run of sampling."""
        matchings = {
            name: Matching(self.merging, name, place.grid) for name, place in self.merged().items()
        }
        wrapped: dict[nn.Module, nn.Module] = {}
        for name, matching in matchings.items():
            layer = self.places()[name].layer
            wrapped[layer.self_attention] = MergedAttention(layer.self_attention, matching)
            if self.merging.cross:
                wrapped[layer.cross_attention] = MergedCrossAttention(
                    layer.cross_attention, matching
                )
            if self.merging.feed_forward:
                wrapped[layer.feed_forward] = MergedFeedForward(layer.feed_forward, matching)
        return Run(self.model.read(prompts, trace), _replaced(self.model, wrapped), matchings)

    def forward(self, x: Tensor, time: Tensor, memory: Run, trace: Trace | None = None) -> Tensor:
        """Predict (B, C, H, W); the trace also gets the place (B, N) of each merged position."""
        prediction: Tensor = memory.model(x, time, memory.prompted, trace)
        if trace is not None:
            for name, matching in memory.matchings.items():
                trace.merged[name] = matching.current.source
        return prediction


def with_merged_tokens(model: DiffusionModel, merging: TokenMerging) -> MergedDiffusion:
    """Wrap a diffusion model, which stays as it is, so that positions are merged in attention."""
    merged = MergedDiffusion(model, merging)
    if merging.ratio > 0 and not merged.merged():
        finest = max(place.grid[0] * place.grid[1] for place in model.places().values())
        rule = f"layers merge with at least {merging.min_tokens} (min_tokens)"
        raise InputError(f"the finest layer with attention has {finest} positions; {rule}")
    return merged


def _replaced(module: nn.Module, replacements: Mapping[nn.Module, nn.Module]) -> nn.Module:
    """Copy the modules that contain a replaced one; all others, and all weights, are shared."""
    if module in replacements:
        return replacements[module]
    children = {
        name: None if child is None else _replaced(child, replacements)
        for name, child in module._modules.items()
    }
    if all(children[name] is child for name, child in module._modules.items()):
        return module
    copied = copy.copy(module)
    copied._modules = children
    return copied
