"""The diffusion Transformer: patches of noise, adaptive norms (Peebles and Xie, 2023).

Shapes: B batch, N patches, D model width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import FeedForward
from seq2see.layers.dropout import Dropout
from seq2see.layers.shapes import KeysValues
from seq2see.layers.trace import Trace, at, keep, wanted
from seq2see.models.diffusion import (
    Condition,
    DiffusionModel,
    Place,
    Prompted,
    PromptEncoder,
    Shape,
    zeroed,
)


class DiffusionTransformer(DiffusionModel):
    """Layers of attention over patches, conditioned by the scale, shift and gate of their norms.

    Prompts are attended to, not put into the sequence: their keys and values are then computed
    once for all steps, and the sequence remains a grid.
    """

    def __init__(
        self,
        prompts: PromptEncoder,
        shape: Shape,
        *,
        width: int = 192,
        heads: int = 6,
        layers: int = 6,
        patch: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(prompts, shape, multiple=patch)
        self.patch = patch
        self.grid = shape[1] // patch, shape[2] // patch
        pixels = shape[0] * patch**2
        self.condition = Condition(width, prompts.width)
        self.patches = nn.Linear(pixels, width)
        self.row_embedding = nn.Embedding(self.grid[0], width)
        self.column_embedding = nn.Embedding(self.grid[1], width)
        for positions in (self.row_embedding, self.column_embedding):
            nn.init.normal_(positions.weight, std=0.5)  # of the same size as the patches
        self.decoder = nn.ModuleList(
            AdaptiveLayer(width, heads, prompts.width, dropout) for _ in range(layers)
        )
        self.norm = AdaptiveNorm(width)
        self.output = zeroed(nn.Linear(width, pixels))

    def forward(
        self, x: Tensor, time: Tensor, memory: Prompted, trace: Trace | None = None
    ) -> Tensor:
        """Predict (B, C, H, W); the trace gets `decoder.0.self`, `decoder.0.cross` …"""
        self.check(x, time)
        condition = self.condition(time, memory.pooled)  # (B, D)
        x = functional.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)
        x = self.patches(x)  # (B, N, D)
        x = x + (self.row_embedding.weight[:, None] + self.column_embedding.weight).flatten(0, 1)
        for i, layer in enumerate(self.decoder):
            name = f"decoder.{i}"
            x = layer(x, condition, memory.pairs[name], at(trace, name))
        x = self.output(self.norm(x, condition))
        x = torch.unflatten(x.transpose(1, 2), 2, self.grid)  # (B, C · patch², rows, columns)
        return functional.pixel_shuffle(x, self.patch)

    def places(self) -> dict[str, Place]:
        return {f"decoder.{i}": Place(layer, self.grid) for i, layer in enumerate(self.decoder)}


class AdaptiveLayer(nn.Module):
    """Self-attention, cross-attention to the prompt and feed-forward in adaptive residuals."""

    def __init__(self, width: int, heads: int, memory_width: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads)
        self.cross_attention = MultiHeadAttention(
            width, heads, key_width=memory_width, value_width=memory_width
        )
        self.feed_forward = FeedForward(width, 4 * width, dropout)
        self.self_residual = AdaptiveResidual(width, dropout)
        self.cross_residual = AdaptiveResidual(width, dropout)
        self.feed_forward_residual = AdaptiveResidual(width, dropout)

    def forward(
        self, x: Tensor, condition: Tensor, memory: KeysValues, trace: Trace | None = None
    ) -> Tensor:
        """x (B, N, D), condition (B, D) → (B, N, D)."""
        need = wanted(trace)
        y = self.self_residual.before(x, condition)
        y, weights = self.self_attention(y, y, need_weights=need)
        keep(trace, "self", weights)
        x = self.self_residual.after(x, y, condition)
        y = self.cross_residual.before(x, condition)
        y, weights = self.cross_attention(y, memory, need_weights=need)
        keep(trace, "cross", weights)
        x = self.cross_residual.after(x, y, condition)
        y = self.feed_forward(self.feed_forward_residual.before(x, condition))
        return self.feed_forward_residual.after(x, y, condition)


class AdaptiveNorm(nn.Module):
    """norm(x) · (1 + scale) + shift, with scale and shift from the condition; both start at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.condition = zeroed(nn.Linear(width, 2 * width))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.condition(condition)[:, None].chunk(2, dim=2)  # (B, 1, D)
        return self.norm(x) * (1 + scale) + shift  # type: ignore[no-any-return]


class AdaptiveResidual(nn.Module):
    """x + gate · dropout(f(norm(x))), with the gate from the condition; it starts at 0."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = AdaptiveNorm(width)
        self.dropout = Dropout(dropout)
        self.gate = zeroed(nn.Linear(width, width))

    def before(self, x: Tensor, condition: Tensor) -> Tensor:
        return self.norm(x, condition)  # type: ignore[no-any-return]

    def after(self, x: Tensor, output: Tensor, condition: Tensor) -> Tensor:
        gate = self.gate(condition)[:, None]  # (B, 1, D)
        return x + gate * self.dropout(output)  # type: ignore[no-any-return]
