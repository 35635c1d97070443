"""The encoder–decoder Transformer of *Attention Is All You Need* (Vaswani et al., 2017)."""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import KeysValues, Maybe
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.reduction.encoder import Reducible, through
from seq2see.layers.trace import Trace
from seq2see.models.memory import sentences_of
from seq2see.models.parts import decoder_layer, encoder_layer, initialise, last_norm, positions_of
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import END, PAD


@dataclass(frozen=True)
class Memory:
    """What the encoder made of the source."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S)
    bias: Maybe = None  # (B, 1, 1, S), added to the scores where a state stands for several tokens


@dataclass(frozen=True)
class State:
    """All that the next decoding step needs: keys and values of the memory and of the past, per layer."""

    memory: list[KeysValues]
    memory_mask: Tensor  # (B, 1, 1, S)
    past: list[KeysValues]  # of B hypotheses, or of as many for each sentence, side by side
    memory_bias: Maybe = None  # (B, 1, 1, S)

    def select(self, rows: Tensor) -> "State":
        """Keep, repeat or reorder hypotheses; those of a sentence share its memory while they are equally many."""

        def pick(pairs: list[KeysValues], rows: Tensor) -> list[KeysValues]:
            return [
                (keys.index_select(0, rows), values.index_select(0, rows)) for keys, values in pairs
            ]

        past, kept = (
            pick(self.past, rows),
            sentences_of(rows, len(self.past[0][0]), len(self.memory_mask)),
        )
        if kept is None:
            return replace(self, past=past)
        bias = None if self.memory_bias is None else self.memory_bias.index_select(0, kept)
        return State(pick(self.memory, kept), self.memory_mask.index_select(0, kept), past, bias)


class Transformer(Reducible):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        if tie == "all" and source_size != target_size:
            raise ValueError(
                f"tie 'all' needs one vocabulary, not {source_size} and {target_size} entries"
            )
        self.width = config.width
        self.source_positions, self.target_positions = positions_of(config), positions_of(config)
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = (
            self.target_embedding if tie == "all" else nn.Embedding(source_size, config.width)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = nn.ModuleList(
            encoder_layer(config) for _ in range(config.encoder_layers)
        )
        self.decoder: Any = nn.ModuleList(
            decoder_layer(config) for _ in range(config.decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = last_norm(config), last_norm(config)
        self.plan = None
        self.output = nn.Linear(config.width, target_size)
        initialise(self, config)
        if tie != "none":
            self.output.weight = self.target_embedding.weight

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, T, V) of every target token given those before it."""
        return self.step(self.start(self.encode(batch.source, trace)), batch.target_in, trace)[0]

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory."""
        mask = padding_mask(source, PAD)
        x = self.embed(self.source_embedding, self.source_positions, source)
        if self.plan is not None:  # each layer goes on with fewer tokens
            left = through(self.encoder, x, source != PAD, self.plan, source == END, trace)
            return Memory(self.encoder_norm(left.states), left.mask, left.bias)
        for i, layer in enumerate(self.encoder):
            x = layer(x, mask, None if trace is None else trace.at(f"encoder.{i}"))
        return Memory(self.encoder_norm(x), mask)

    def start(self, memory: Memory) -> State:
        """The state before the first target token: the memory's keys and values, computed once."""
        states, nothing = memory.states, memory.states[:, :0]
        pairs = [layer.cross_attention.keys_values(states, states) for layer in self.decoder]
        past = [layer.self_attention.keys_values(nothing, nothing) for layer in self.decoder]
        return State(pairs, memory.mask, past, memory.bias)

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them."""
        seen, new = state.past[0][0].shape[2], ids.shape[1]
        x = self.embed(self.target_embedding, self.target_positions, ids, seen)
        mask = causal_mask(new, seen + new, ids.device)
        past: list[KeysValues] = []
        for i, layer in enumerate(self.decoder):
            at = None if trace is None else trace.at(f"decoder.{i}")
            memory: Any = {"memory_mask": state.memory_mask, "memory_bias": state.memory_bias}
            x, grown = layer(x, state.memory[i], state.past[i], mask=mask, trace=at, **memory)
            past.append(grown)
        return self.output(self.decoder_norm(x)), replace(state, past=past)  # (B, T, V)

    def embed(self, embedding: nn.Module, positions: Any, ids: Tensor, start: int = 0) -> Tensor:
        x = embedding(ids) * self.width**0.5  # (B, T, D), section 3.4
        if positions is not None:
            x = x + positions(start, x)
        return self.dropout(x)  # type: ignore[no-any-return]
