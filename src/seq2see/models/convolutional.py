"""Convolutional encoder–decoder.

*Convolutional Sequence to Sequence Learning* (Gehring et al., 2017), to which the sections refer.
Each layer has a receptive field of a few words, which grows with the stack; all positions are
computed in parallel.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import padding_mask
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace, at
from seq2see.models.memory import EncoderDecoder, Memory, State
from seq2see.models.parts import check_tie, positions_of
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

ROOT_HALF = 0.5**0.5  # keeps the variance of a sum of two independent values (section 3.5)


class GatedConvolution(nn.Module):
    """A ⊗ σ(B), where [A, B] is linear in `kernel` words (section 3.2; Dauphin et al., 2017)."""

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = nn.Linear(kernel * width, 2 * width)
        # Gates leave a third of the variance, and dropout before them raises it. Section 3.5 counts
        # with a quarter, for inputs near 0; at variance one and more E[σ(B)²] is larger, and
        # activations would grow with depth.
        nn.init.normal_(self.window.weight, std=(3 * (1 - dropout) / (kernel * width)) ** 0.5)
        nn.init.zeros_(self.window.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T + kernel − 1, D) → (B, T, D), without padding."""
        count = x.shape[1] - self.kernel + 1
        windows = torch.cat([x[:, start : start + count] for start in range(self.kernel)], dim=-1)
        return functional.glu(self.window(windows))  # (B, T, D)


class EncoderLayer(nn.Module):
    """Residual gated convolution, zero-padded at both ends of the sentence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        # Padding tokens become zeros, so that the rest of the batch does not affect a sentence.
        y: Tensor = self.dropout(x).masked_fill(padding, 0.0)
        kernel = self.convolution.kernel
        y = self.convolution(functional.pad(y, (0, 0, (kernel - 1) // 2, kernel // 2)))
        return (x + y) * ROOT_HALF  # (B, S, D)


class DecoderLayer(nn.Module):
    """Residual causal gated convolution, then attention to the memory (section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.attention_dropout = config.attention_dropout
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)
        self.query = nn.Linear(config.width, config.width)
        self.score = SCORES[config.score](config.width, 1)
        self.context = nn.Linear(config.width, config.width)
        for projection in (self.query, self.context):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self, x: Tensor, past: Tensor, words: Tensor, memory: Memory, trace: Trace | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the output (B, T, D) and the new past for x and the target embeddings (B, T, D).

        `past` (B, kernel − 1, D) holds the layer's last inputs before x.
        """
        window = torch.cat([past, self.dropout(x)], dim=1)  # (B, kernel − 1 + T, D)
        y = self.convolution(window)
        query = (self.query(y) + words) * ROOT_HALF  # equation 1: state plus previous target word
        dropout = self.attention_dropout if self.training else 0.0
        context = memory.attend(query, self.score, dropout, trace)
        y = (y + self.context(context)) * ROOT_HALF
        return (x + y) * ROOT_HALF, window[:, x.shape[1] :]


class Convolutional(EncoderDecoder):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        check_tie(tie, source_size, target_size)
        self.width = config.width
        self.kernel = config.kernel
        self.source_positions = positions_of(config)
        self.target_positions = positions_of(config)
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = (
            self.target_embedding if tie == "all" else nn.Embedding(source_size, config.width)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = nn.ModuleList(
            EncoderLayer(config) for _ in range(config.encoder_layers)
        )
        self.decoder: Any = nn.ModuleList(
            DecoderLayer(config) for _ in range(config.decoder_layers)
        )
        self.readout = nn.Linear(config.width, config.width)
        self.output = nn.Linear(config.width, target_size)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=config.width**-0.5)
        for linear in (self.readout, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        if tie != "none":
            self.output.weight = self.target_embedding.weight

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory: keys are encoder states, values add the embeddings."""
        mask = padding_mask(source, PAD)
        padding = ~mask[:, 0, 0, :, None]  # (B, S, 1)
        words = self.embed(self.source_embedding, self.source_positions, source)
        x = words
        for layer in self.encoder:
            x = layer(x, padding)
        return Memory(x, (x + words) * ROOT_HALF, mask)

    def start(self, memory: Memory) -> State:
        """Initial decoder state: zeros as the past of every layer."""
        zeros = memory.keys.new_zeros(len(memory.keys), self.kernel - 1, self.width)
        return State(memory, [zeros] * len(self.decoder))

    def run(self, state: State, ids: Tensor, trace: Trace | None) -> tuple[Tensor, State]:
        """Run target ids (B, T) through the decoder: states (B, T, D), and the state after them."""
        words = self.embed(self.target_embedding, self.target_positions, ids, state.seen)
        x = words
        past: list[Tensor] = []
        for i, layer in enumerate(self.decoder):
            part = at(trace, f"decoder.{i}")
            x, window = layer(x, state.past[i], words, state.memory, part)
            past.append(window)
        x = self.dropout(self.readout(x))  # (B, T, D)
        return x, State(state.memory, past, state.seen + ids.shape[1])

    def embed(self, embedding: nn.Module, positions: Any, ids: Tensor, start: int = 0) -> Tensor:
        x: Tensor = embedding(ids) * self.width**0.5  # (B, T, D), with variance one
        if positions is not None:
            x = x + positions(start, x)
        x = self.dropout(x)
        return x
