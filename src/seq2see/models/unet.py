"""The U-Net: convolutions at falling and rising resolution, with attention (Rombach et al., 2022).

Shapes: B batch, C channels, H × W positions, E width of the condition.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, FeedForward
from seq2see.layers.dropout import Dropout
from seq2see.layers.shapes import KeysValues
from seq2see.layers.trace import Trace, at
from seq2see.models.diffusion import (
    Condition,
    DiffusionModel,
    Grid,
    Place,
    Prompted,
    PromptEncoder,
    Shape,
    zeroed,
)
from seq2see.recipe.diffusion import NORM_GROUPS


class UNet(DiffusionModel):
    """Down to a coarse grid and up again; a stage on the way up also sees its counterpart.

    Each level has half the resolution of the one before. Those in `attention` have a layer of
    attention after every convolutional block, and so has the middle. With `patch` > 1 a position
    of the finest level is a square of pixels (Hoogeboom et al., 2023).
    """

    def __init__(
        self,
        prompts: PromptEncoder,
        shape: Shape,
        *,
        channels: Sequence[int] = (48, 96, 96),
        attention: Sequence[int] = (1, 2),
        blocks: int = 1,
        heads: int = 4,
        patch: int = 1,
        dropout: float = 0.0,
    ) -> None:
        _check(channels, attention)
        super().__init__(prompts, shape, multiple=patch * 2 ** (len(channels) - 1))
        self.patch = patch
        width = 4 * channels[0]
        self.condition = Condition(width, prompts.width)

        def stage(before: int, level: int, attends: bool, resize: nn.Module) -> Stage:
            after = channels[level]
            layer = attention_layer(after, heads, prompts.width, dropout) if attends else None
            grid = (shape[1] // patch // 2**level, shape[2] // patch // 2**level)
            return Stage(resize, ResidualBlock(before, after, width, dropout), layer, grid)

        pixels = shape[0] * patch**2
        levels = [level for level in range(len(channels)) for _ in range(blocks)]
        self.stem = nn.Conv2d(pixels, channels[0], 3, padding=1)
        self.down = nn.ModuleList()
        for finer, level in pairwise([0, *levels]):
            resize = _halve(channels[finer]) if finer < level else nn.Identity()
            self.down.append(stage(channels[finer], level, level in attention, resize))
        last = len(channels) - 1
        self.middle = nn.ModuleList(
            stage(channels[last], last, attends, nn.Identity()) for attends in (True, False)
        )
        self.up = nn.ModuleList()
        for coarser, level in pairwise([last, *reversed(levels)]):
            resize = nn.Upsample(scale_factor=2) if level < coarser else nn.Identity()
            both = channels[coarser] + channels[level]
            self.up.append(stage(both, level, level in attention, resize))
        self.norm = nn.GroupNorm(NORM_GROUPS, channels[0])
        self.output = zeroed(nn.Conv2d(channels[0], pixels, 3, padding=1))

    def forward(
        self, x: Tensor, time: Tensor, memory: Prompted, trace: Trace | None = None
    ) -> Tensor:
        """Predict (B, C, H, W); the trace gets `down.1.self`, `middle.0.cross`, `up.0.self` …"""
        self.check(x, time)
        condition = self.condition(time, memory.pooled)  # (B, E)
        x = functional.pixel_unshuffle(x, self.patch)
        # Channels last is the faster layout of convolutions, and the one of attention.
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        passed: list[Tensor] = []
        for i, stage in enumerate(self.down):
            x = stage(x, condition, memory.pairs.get(f"down.{i}"), at(trace, f"down.{i}"))
            passed.append(x)
        for i, stage in enumerate(self.middle):
            x = stage(x, condition, memory.pairs.get(f"middle.{i}"), at(trace, f"middle.{i}"))
        for i, stage in enumerate(self.up):
            beside = passed.pop()
            x = stage(x, condition, memory.pairs.get(f"up.{i}"), at(trace, f"up.{i}"), beside)
        x = self.output(functional.silu(self.norm(x)))
        return functional.pixel_shuffle(x.contiguous(), self.patch)

    def places(self) -> dict[str, Place]:
        named = {
            f"{part}.{i}": stage
            for part in ("down", "middle", "up")
            for i, stage in enumerate(getattr(self, part))
        }
        return {
            name: Place(stage.layer, stage.grid)
            for name, stage in named.items()
            if stage.layer is not None
        }


class Stage(nn.Module):
    """Change of resolution, convolutional block and, if there is one, a layer of attention."""

    positions: Tensor  # (H · W, C), where there is attention

    def __init__(
        self, resize: nn.Module, block: nn.Module, layer: DecoderLayer | None, grid: Grid
    ) -> None:
        super().__init__()
        self.resize = resize
        self.block = block
        self.layer = layer
        self.grid = grid
        if layer is not None:
            width = layer.feed_forward.contract.out_features
            self.register_buffer("positions", coordinates(grid, width), persistent=False)

    def forward(
        self,
        x: Tensor,
        condition: Tensor,
        memory: KeysValues | None,
        trace: Trace | None,
        beside: Tensor | None = None,
    ) -> Tensor:
        """x (B, C, H, W) → (B, C', H', W'), with more channels `beside` those of x."""
        x = self.resize(x)
        if beside is not None:
            x = torch.cat([x, beside], dim=1)
        x = self.block(x, condition)
        if self.layer is None:
            return x
        rows = x.permute(0, 2, 3, 1).flatten(1, 2)  # (B, H' · W', C')
        # Convolutions sense their position only near the borders.
        rows = self.layer(rows + self.positions, memory, trace=trace)
        return torch.unflatten(rows, 1, self.grid).permute(0, 3, 1, 2)  # (B, C', H', W')


class ResidualBlock(nn.Module):
    """Two convolutions around a residual; the condition scales and shifts between them."""

    def __init__(self, before: int, after: int, condition: int, dropout: float) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(NORM_GROUPS, before)
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.condition = nn.Linear(condition, 2 * after)
        self.second_norm = nn.GroupNorm(NORM_GROUPS, after)
        self.dropout = Dropout(dropout)
        self.second = zeroed(nn.Conv2d(after, after, 3, padding=1))
        self.skip = nn.Identity() if before == after else nn.Conv2d(before, after, 1)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (B, C, H, W), condition (B, E) → (B, C', H, W)."""
        y = self.first(functional.silu(self.first_norm(x)))
        scale, shift = self.condition(condition)[..., None, None].chunk(2, dim=1)
        y = functional.silu(self.second_norm(y) * (1 + scale) + shift)
        y = self.second(self.dropout(y))
        return self.skip(x) + y  # type: ignore[no-any-return]


def attention_layer(width: int, heads: int, memory_width: int, dropout: float) -> DecoderLayer:
    """Self-attention, cross-attention to the prompt and feed-forward.

    It starts as the identity: what it adds to its input is multiplied by zero.
    """
    layer = DecoderLayer(
        MultiHeadAttention(width, heads),
        MultiHeadAttention(width, heads, key_width=memory_width, value_width=memory_width),
        FeedForward(width, 4 * width, dropout),
        dropout=dropout,
    )
    zeroed(layer.self_attention.output)
    zeroed(layer.cross_attention.output)
    zeroed(layer.feed_forward.contract)
    return layer


def coordinates(grid: Grid, width: int) -> Tensor:
    """Encode the positions of a grid, row by row: (H · W, C).

    Half of the features are waves over the height, half over the width, from half a period to four
    in the whole picture: a place has the same coordinates in pictures of every size.
    """
    rate = math.pi * torch.logspace(0, 3, width // 4, base=2)  # (C/4,)
    along = []
    for size in grid:
        angle = (torch.arange(size) + 0.5)[:, None] / size * rate
        along.append(torch.cat([angle.sin(), angle.cos()], dim=1))  # (H or W, C/2)
    rows, columns = along
    pairs = rows[:, None].expand(*grid, -1), columns.expand(*grid, -1)  # (H, W, C/2) each
    return torch.cat(pairs, dim=-1).flatten(0, 1)


def _halve(channels: int) -> nn.Module:
    """Convolution to half the resolution."""
    return nn.Conv2d(channels, channels, 3, stride=2, padding=1)


def _check(channels: Sequence[int], attention: Sequence[int]) -> None:
    for width in channels:
        if width < 1 or width % NORM_GROUPS:
            raise ValueError(f"channels ({width}) must be divisible by {NORM_GROUPS}")
    for level in attention:
        if not 0 <= level < len(channels):
            last = len(channels) - 1
            raise ValueError(f"attention at level {level}: the levels are 0 to {last}")
