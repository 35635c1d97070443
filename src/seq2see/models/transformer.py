"""The encoder–decoder Transformer of *Attention Is All You Need* (Vaswani et al., 2017)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.config import ModelConfig
from seq2see.layers.attention import KeysValues
from seq2see.layers.blocks import DecoderLayer, EncoderLayer
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.positions import Positions
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.text.vocab import PAD


@dataclass(frozen=True)
class Memory:
    """What the encoder made of the source."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S)


@dataclass(frozen=True)
class State:
    """All that the next decoding step needs: keys and values of the memory and of the past, per layer."""

    memory: list[KeysValues]
    memory_mask: Tensor  # (B, 1, 1, S)
    past: list[KeysValues | None]

    def select(self, rows: Tensor) -> "State":
        """Keep, repeat or reorder sentences: `rows` index the batch."""

        def pick(pair: KeysValues) -> KeysValues:
            return pair[0].index_select(0, rows), pair[1].index_select(0, rows)

        return State(
            [pick(pair) for pair in self.memory],
            self.memory_mask.index_select(0, rows),
            [None if pair is None else pick(pair) for pair in self.past],
        )


class Transformer(nn.Module):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none") -> None:
        super().__init__()
        if tie == "all" and source_size != target_size:
            raise ValueError(f"tie 'all' needs one vocabulary, not {source_size} and {target_size} entries")
        self.width = config.width
        self.positions = Positions(config.width) if config.positions == "sinusoidal" else None
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = self.target_embedding if tie == "all" else nn.Embedding(source_size, config.width)
        self.dropout = Dropout(config.dropout)

        def stack(layer: type[EncoderLayer] | type[DecoderLayer], count: int) -> Any:
            return nn.ModuleList(
                layer(
                    config.width,
                    config.heads,
                    config.inner,
                    dropout=config.dropout,
                    attention_dropout=config.attention_dropout,
                    norm=config.norm,
                    score=SCORES[config.score],
                )
                for _ in range(count)
            )

        self.encoder: Iterable[EncoderLayer] = stack(EncoderLayer, config.encoder_layers)
        self.decoder: Iterable[DecoderLayer] = stack(DecoderLayer, config.decoder_layers)
        # Pre-norm leaves the last residual unnormed, so each stack ends with one more norm.
        self.encoder_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.output = nn.Linear(config.width, target_size)
        self._initialise(config.embedding_init)
        if tie != "none":
            self.output.weight = self.target_embedding.weight

    def _initialise(self, embedding_init: str) -> None:
        for name, parameter in self.named_parameters():
            if "embedding" in name and embedding_init == "normal":
                # Times √d this has variance one, like the encodings; as output matrix it gives logits of variance one.
                nn.init.normal_(parameter, std=self.width**-0.5)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, T, V) of every target token given those before it."""
        memory = self.encode(batch.source, trace)
        logits, _ = self.step(self.start(memory), batch.target_in, trace)
        return logits

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory."""
        mask = padding_mask(source, PAD)
        x = self._embed(self.source_embedding, source, 0)
        for i, layer in enumerate(self.encoder):
            x = layer(x, mask, None if trace is None else trace.at(f"encoder.{i}"))
        return Memory(self.encoder_norm(x), mask)

    def start(self, memory: Memory) -> State:
        """The state before the first target token: the memory's keys and values, computed once."""
        pairs = [layer.cross_attention.keys_values(memory.states, memory.states) for layer in self.decoder]
        return State(pairs, memory.mask, [None] * len(pairs))

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them."""
        seen = 0 if state.past[0] is None else state.past[0][0].shape[2]
        new = ids.shape[1]
        x = self._embed(self.target_embedding, ids, seen)
        mask = causal_mask(new, seen + new, ids.device)
        past: list[KeysValues | None] = []
        for i, layer in enumerate(self.decoder):
            x, grown = layer(
                x,
                state.memory[i],
                mask=mask,
                memory_mask=state.memory_mask,
                past=state.past[i],
                trace=None if trace is None else trace.at(f"decoder.{i}"),
            )
            past.append(grown)
        return self.output(self.decoder_norm(x)), State(state.memory, state.memory_mask, past)  # (B, T, V)

    def _embed(self, embedding: nn.Module, ids: Tensor, start: int) -> Tensor:
        x = embedding(ids) * self.width**0.5  # (B, T, D), section 3.4
        if self.positions is not None:
            x = x + self.positions(start, x)
        return self.dropout(x)  # type: ignore[no-any-return]
