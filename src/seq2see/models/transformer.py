"""The encoder–decoder Transformer of *Attention Is All You Need* (Vaswani et al., 2017)."""

from copy import copy
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.shapes import PADDED, Layout, Rows
from seq2see.layers.trace import Trace, at
from seq2see.models import parts
from seq2see.models.parts import Memory, State
from seq2see.recipe.network import ModelConfig
from seq2see.text.specials import PAD


class Transformer(nn.Module):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        parts.check_tie(tie, source_size, target_size)
        self.width = config.width
        self.source_positions = parts.positions_of(config)
        self.target_positions = parts.positions_of(config)
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = self.target_embedding
        if tie != "all":
            self.source_embedding = nn.Embedding(source_size, config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = parts.encoder(config, special="last")  # </s>
        layers = [parts.decoder_layer(config) for _ in range(config.decoder_layers)]
        self.decoder: Any = nn.ModuleList(layers)
        self.encoder_norm = parts.last_norm(config)
        self.decoder_norm = parts.last_norm(config)
        self.output = nn.Linear(config.width, target_size)
        parts.initialise(self, config)
        if tie != "none":
            self.output.weight = self.target_embedding.weight

    def forward(self, batch: Any, trace: Trace | None = None) -> Tensor:
        """Compute the logits (B, T, V) of each target token of a `Batch`, given those before it."""
        return self.output(self.states(batch, trace))  # type: ignore[no-any-return]

    def states(self, batch: Any, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        """Compute the decoder's output (B, T, D) under teacher forcing, or (N, D) of `RealRows`."""
        memory = self.encode(batch.source, trace, layout)
        state = State(memory.projected([layer.cross_attention for layer in self.decoder]), [])
        return self._run(state, batch.target_in, trace, layout(batch.target_in != PAD))

    def encode(self, source: Tensor, trace: Trace | None = None, layout: Layout = Rows) -> Memory:
        """Source ids (B, S) → memory."""
        rows = layout(source != PAD)
        x = rows.gather(self.embed(self.source_embedding, self.source_positions, source))
        memory: Memory = self.encoder(x, padding_mask(source, PAD), trace, rows)
        return replace(memory, states=self.encoder_norm(memory.states))

    def start(self, memory: Memory) -> State:
        """Project the memory for every layer, and begin with an empty past."""
        nothing = memory.states[:, :0]
        past = [layer.self_attention.project(nothing, nothing) for layer in self.decoder]
        return State(memory.projected([layer.cross_attention for layer in self.decoder]), past)

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """Read the next target ids (B, T ≥ 1); return logits (B, T, V) and the state after them."""
        state = State(state.memory, [copy(pair) for pair in state.past])
        return self.output(self._run(state, ids, trace)), state

    def _run(self, state: State, ids: Tensor, trace: Trace | None, rows: Rows = PADDED) -> Tensor:
        """Run target ids (B, T) through the decoder, which extends the past of the state."""
        seen = state.past[0].keys.shape[2] if state.past else 0
        x = rows.gather(self.embed(self.target_embedding, self.target_positions, ids, seen))
        mask = causal_mask(ids.shape[1], seen + ids.shape[1], ids.device)
        for i, layer in enumerate(self.decoder):
            cache = state.past[i] if state.past else None
            x = layer(x, state.memory[i], mask, at(trace, f"decoder.{i}"), cache=cache, rows=rows)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def embed(self, embedding: nn.Module, positions: Any, ids: Tensor, start: int = 0) -> Tensor:
        x = embedding(ids) * self.width**0.5  # (B, T, D), section 3.4
        if positions is not None:
            x = x + positions(start, x)
        return self.dropout(x)  # type: ignore[no-any-return]
