"""The Vision Transformer: a picture is a sentence of patches (Dosovitskiy et al., 2021)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch
from seq2see.layers.dropout import Dropout
from seq2see.layers.reduction.encoder import Reducible, through
from seq2see.layers.trace import Trace
from seq2see.models.language import mean
from seq2see.models.parts import encoder_layer, initialise, last_norm
from seq2see.recipe.schema import ModelConfig


class VisionTransformer(Reducible):
    """Pixels (B, C, H, W) → logits (B, 1, V) of the class: embed, the encoder's layers, pool.

    Shapes: N patches, row by row from the top left; P tokens, which are the class token, if there is one, and these.
    """

    def __init__(self, config: ModelConfig, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, height, width = shape
        if height % config.patch or width % config.patch:
            raise ValueError(
                f"patch ({config.patch}) must divide a picture's height ({height}) and width ({width})"
            )
        self.shape, self.patch, self.overlap, self.width = (
            shape,
            config.patch,
            config.overlap,
            config.width,
        )
        self.grid = (
            height // config.patch,
            width // config.patch,
        )  # patches in a column, patches in a row
        self.patches = nn.Linear(channels * (config.patch + 2 * config.overlap) ** 2, config.width)
        self.row_embedding = nn.Embedding(self.grid[0], config.width)
        self.column_embedding = nn.Embedding(self.grid[1], config.width)
        self.class_embedding = nn.Embedding(1, config.width) if config.pool == "class" else None
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = nn.ModuleList(
            encoder_layer(config) for _ in range(config.encoder_layers)
        )
        self.encoder_norm = last_norm(config)
        self.plan = None
        self.output = nn.Linear(config.width, classes)
        initialise(self, config)

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, 1, V) for the one id of `batch.target_out`; the pixels are `batch.source`."""
        return self.output(self.encode(batch.source, trace))[:, None]  # type: ignore[no-any-return]

    def encode(self, pixels: Tensor, trace: Trace | None = None) -> Tensor:
        """Normalised pixels (B, C, H, W) → the state (B, D) that is classified."""
        x = self.embed(pixels)  # (B, P, D)
        if self.plan is not None:  # each layer goes on with fewer tokens
            real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
            left = through(self.encoder, x, real, self.plan, self.protected(real), trace)
            return self.pool(left.states, left.sizes)
        for i, layer in enumerate(self.encoder):
            x = layer(x, None, None if trace is None else trace.at(f"encoder.{i}"))
        return self.pool(x)

    def protected(self, real: Tensor) -> Tensor:
        """Which of the tokens (B, P) are neither merged nor pruned: the class token."""
        first = torch.arange(real.shape[1], device=real.device) == 0
        return real & first if self.class_embedding is not None else torch.zeros_like(real)

    def embed(self, pixels: Tensor) -> Tensor:
        """Each patch projected, and where it stands: a learned vector for its row and one for its column."""
        x = self.patches(self.cut(pixels))  # (B, N, D)
        x = x + (self.row_embedding.weight[:, None] + self.column_embedding.weight).flatten(0, 1)
        if self.class_embedding is not None:
            x = torch.cat(
                [self.class_embedding.weight.expand(len(x), 1, -1), x], dim=1
            )  # (B, 1 + N, D)
        return self.dropout(x)  # type: ignore[no-any-return]

    def cut(self, pixels: Tensor) -> Tensor:
        """Pixels (B, C, H, W) → patches (B, N, C · (patch + 2 overlap)²): projected, a convolution with stride `patch`.

        Beyond the picture's edge there is 0, the mean grey.
        """
        if pixels.dim() != 4 or pixels.shape[1:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"pixels has shape {tuple(pixels.shape)}; it must be (B, {wanted})")
        size = self.patch + 2 * self.overlap
        return functional.unfold(pixels, size, padding=self.overlap, stride=self.patch).transpose(
            1, 2
        )

    def pool(self, x: Tensor, sizes: Tensor | None = None) -> Tensor:
        """The last layer's (B, P, D) → (B, D): the class token's state, or the mean of all patches'.

        If some were merged or pruned, a token counts as `sizes` (B, P) patches.
        """
        x = self.encoder_norm(x)
        if self.class_embedding is not None:
            return x[:, 0]
        return x.mean(1) if sizes is None else mean(x, sizes)[:, 0]
