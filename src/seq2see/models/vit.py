"""The Vision Transformer: a picture is a sentence of patches (Dosovitskiy et al., 2021)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.dropout import Dropout
from seq2see.layers.trace import Trace
from seq2see.models import parts
from seq2see.models.language import mean
from seq2see.pictures.augment import PictureBatch
from seq2see.recipe.network import ModelConfig


class VisionTransformer(nn.Module):
    """Pixels (B, C, H, W) → logits (B, V) of the class: embed, encode, pool.

    Shapes: N patches, row by row from the top left; P tokens, the class token, if any, before them.
    """

    def __init__(self, config: ModelConfig, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, height, width = shape
        if height % config.patch or width % config.patch:
            sizes = f"a picture's height ({height}) and width ({width})"
            raise ValueError(f"patch ({config.patch}) must divide {sizes}")
        self.shape = shape
        self.patch = config.patch
        self.overlap = config.overlap
        self.width = config.width
        self.grid = height // config.patch, width // config.patch  # rows, columns
        pixels = channels * (config.patch + 2 * config.overlap) ** 2
        self.patches = nn.Linear(pixels, config.width)
        self.row_embedding = nn.Embedding(self.grid[0], config.width)
        self.column_embedding = nn.Embedding(self.grid[1], config.width)
        self.class_embedding = nn.Embedding(1, config.width) if config.pool == "class" else None
        self.dropout = Dropout(config.dropout)
        special = "first" if config.pool == "class" else None
        self.encoder: Any = parts.encoder(config, special)
        self.encoder_norm = parts.last_norm(config)
        self.output = nn.Linear(config.width, classes)
        parts.initialise(self, config)

    def forward(self, batch: PictureBatch, trace: Trace | None = None) -> Tensor:
        """Compute the logits (B, V) of the classes."""
        return self.output(self.encode(batch.pixels, trace))  # type: ignore[no-any-return]

    def encode(self, pixels: Tensor, trace: Trace | None = None) -> Tensor:
        """Normalised pixels (B, C, H, W) → the state (B, D) that is classified."""
        memory = self.encoder(self.embed(pixels), None, trace)
        return self.pool(memory.states, memory.sizes)

    def embed(self, pixels: Tensor) -> Tensor:
        """Project each patch and add learned vectors of its row and its column."""
        x = self.patches(self.cut(pixels))  # (B, N, D)
        x = x + (self.row_embedding.weight[:, None] + self.column_embedding.weight).flatten(0, 1)
        if self.class_embedding is not None:
            first = self.class_embedding.weight.expand(len(x), 1, -1)
            x = torch.cat([first, x], dim=1)  # (B, 1 + N, D)
        return self.dropout(x)  # type: ignore[no-any-return]

    def cut(self, pixels: Tensor) -> Tensor:
        """Pixels (B, C, H, W) → patches (B, N, C · (patch + 2 overlap)²), 0 beyond the edges.

        Projected, this is a convolution with stride `patch`.
        """
        if pixels.dim() != 4 or pixels.shape[1:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"pixels has shape {tuple(pixels.shape)}; it must be (B, {wanted})")
        size = self.patch + 2 * self.overlap
        patches = functional.unfold(pixels, size, padding=self.overlap, stride=self.patch)
        return patches.transpose(1, 2)

    def pool(self, x: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Reduce (B, P, D) to (B, D): the class token's state, or the mean of all patches.

        Where tokens were merged or pruned, each counts as `sizes` (B, P) patches.
        """
        x = self.encoder_norm(x)
        if self.class_embedding is not None:
            return x[:, 0]
        return x.mean(1) if sizes is None else mean(x, sizes)[:, 0]
