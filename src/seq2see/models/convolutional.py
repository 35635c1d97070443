"""The convolutional encoder–decoder of *Convolutional Sequence to Sequence Learning* (Gehring et al., 2017).

Every layer sees a window of a few words, and the stack of them a wider one; all positions are computed at once.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import padding_mask
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.memory import Memory, State
from seq2see.models.parts import positions_of
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import PAD

HALF = 0.5**0.5  # the sum of two independent numbers, times this, has their variance (section 3.5)


class GatedConvolution(nn.Module):
    """A ⊗ σ(B), where [A, B] is a linear map of a window of `kernel` words (section 3.2; Dauphin et al., 2017)."""

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = nn.Linear(kernel * width, 2 * width)
        # The gates leave a third of the variance, and dropout before them raises it (section 3.5, for inputs near 0,
        # counts with a quarter; of words of variance one and more E[σ(B)²] is larger, and the stack would swell).
        nn.init.normal_(self.window.weight, std=(3 * (1 - dropout) / (kernel * width)) ** 0.5)
        nn.init.zeros_(self.window.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T + kernel − 1, D) → (B, T, D): there are as many windows as fit."""
        count = x.shape[1] - self.kernel + 1
        windows = torch.cat([x[:, start : start + count] for start in range(self.kernel)], dim=-1)
        return functional.glu(self.window(windows))  # (B, T, D)


class EncoderLayer(nn.Module):
    """A gated convolution inside a residual, with zeros on both sides of the sentence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.convolution = GatedConvolution(config.width, config.kernel, config.dropout)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        # Zeros where the padding is, so that a sentence ends alike alone and beside a longer one.
        y: Tensor = self.dropout(x).masked_fill(padding, 0.0)
        sides = (self.convolution.kernel - 1) // 2, self.convolution.kernel // 2
        y = self.convolution(functional.pad(y, (0, 0, *sides)))
        return (x + y) * HALF  # (B, S, D)


class DecoderLayer(nn.Module):
    """A gated convolution of what is written so far, then attention to the memory, inside a residual (section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout, self.attention_dropout = Dropout(config.dropout), config.attention_dropout
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
        """x and the target's embedded words (B, T, D), after the kernel − 1 inputs before them: output, new past."""
        window = torch.cat([past, self.dropout(x)], dim=1)  # (B, kernel − 1 + T, D)
        y = self.convolution(window)
        query = (
            self.query(y) + words
        ) * HALF  # equation 1: the state, and the word that was written last
        found = memory.attend(
            query, self.score, self.attention_dropout if self.training else 0.0, trace
        )
        y = (y + self.context(found)) * HALF
        return (x + y) * HALF, window[:, x.shape[1] :]


class Convolutional(nn.Module):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        if tie == "all" and source_size != target_size:
            raise ValueError(
                f"tie 'all' needs one vocabulary, not {source_size} and {target_size} entries"
            )
        self.width, self.kernel = config.width, config.kernel
        self.source_positions, self.target_positions = positions_of(config), positions_of(config)
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

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, T, V) of every target token given those before it."""
        return self.step(self.start(self.encode(batch.source, trace)), batch.target_in, trace)[0]

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory: what the layers made of each word to look for, that and the word to find."""
        mask = padding_mask(source, PAD)
        padding = ~mask[:, 0, 0, :, None]  # (B, S, 1)
        words = self.embed(self.source_embedding, self.source_positions, source)
        x = words
        for layer in self.encoder:
            x = layer(x, padding)
        return Memory(x, (x + words) * HALF, mask)

    def start(self, memory: Memory) -> State:
        """The state before the first target token: nothing but zeros to its left, in every layer."""
        nothing = memory.keys.new_zeros(len(memory.keys), self.kernel - 1, self.width)
        return State(memory, [nothing] * len(self.decoder))

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them."""
        words = self.embed(self.target_embedding, self.target_positions, ids, state.seen)
        x, past = words, list[Tensor]()
        for i, layer in enumerate(self.decoder):
            at = None if trace is None else trace.at(f"decoder.{i}")
            x, window = layer(x, state.past[i], words, state.memory, at)
            past.append(window)
        logits = self.output(self.dropout(self.readout(x)))  # (B, T, V)
        return logits, State(state.memory, past, state.seen + ids.shape[1])

    def embed(self, embedding: nn.Module, positions: Any, ids: Tensor, start: int = 0) -> Tensor:
        x = embedding(ids) * self.width**0.5  # (B, T, D), of variance one
        if positions is not None:
            x = x + positions(start, x)
        return self.dropout(x)  # type: ignore[no-any-return]
