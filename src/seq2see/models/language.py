"""What grew out of the Transformer: the layers of its encoder in one stack, under three masks.

Causal: each position sees those before it, and the stack writes (Radford et al., 2018). Padding alone: all see all, and
it guesses hidden words (Devlin et al., 2019). Prefix: the source sees itself, the target sees the source and what was
written, and it translates (Dong et al., 2019; Raffel et al., 2020).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import KeysValues
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.reduction.encoder import Reducible, through
from seq2see.layers.trace import Trace, keep, wanted
from seq2see.models.parts import encoder_layer, initialise, last_norm, positions_of
from seq2see.models.transformer import State
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import END, PAD

SOURCE, TARGET = 0, 1  # the segments of the prefix model


class Stack(nn.Module):
    """Embedded ids through the layers; `states(batch)` has one state for each id of `batch.target_out`.

    Weights bear the names that they have in the Transformer, so that one can begin with those of the other.
    """

    def __init__(self, config: ModelConfig, size: int, classes: int, tied: bool = False) -> None:
        super().__init__()
        self.width = config.width
        self.target_positions: Any = positions_of(config)
        self.target_embedding = nn.Embedding(size, config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = nn.ModuleList(
            encoder_layer(config) for _ in range(config.encoder_layers)
        )
        self.encoder_norm = last_norm(config)
        self.output = nn.Linear(config.width, classes)
        initialise(self, config)
        if tied:
            self.output.weight = self.target_embedding.weight

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, T, V) for every id of `batch.target_out`."""
        return self.output(self.states(batch, trace))  # type: ignore[no-any-return]

    def states(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """(B, T, D), of which `output` makes logits."""
        raise NotImplementedError

    def embed(self, embedding: nn.Module, ids: Tensor, start: int = 0) -> Tensor:
        x: Tensor = embedding(ids) * self.width**0.5  # (B, T, D)
        return x if self.target_positions is None else x + self.target_positions(start, x)

    def through(self, ids: Tensor, mask: Tensor, trace: Trace | None) -> Tensor:
        """All layers at once: ids (B, T) → states (B, T, D)."""
        x = self.dropout(self.embed(self.target_embedding, ids))
        for i, layer in enumerate(self.encoder):
            x = layer(x, mask, None if trace is None else trace.at(f"encoder.{i}"))
        return self.encoder_norm(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Past:
    """The keys and values of what was read and written so far, per layer."""

    pairs: list[KeysValues]

    def select(self, rows: Tensor) -> "Past":
        """Keep, repeat or reorder texts."""
        return Past(
            [
                (keys.index_select(0, rows), values.index_select(0, rows))
                for keys, values in self.pairs
            ]
        )


class CausalModel(Stack):
    """A language model: what was written → logits of what comes next. It reads `batch.target_in`."""

    def __init__(self, config: ModelConfig, size: int, tied: bool = True) -> None:
        super().__init__(config, size, size, tied)

    def states(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        mask = causal_mask(batch.target_in.shape[1], device=batch.target_in.device)
        return self.through(
            batch.target_in, mask, trace
        )  # padding is at the end, where nothing real can see it

    def start(self, texts: int) -> Past:
        """Before the first token of so many texts."""
        nothing = self.output.weight.new_zeros(texts, 0, self.width)
        return Past([layer.self_attention.keys_values(nothing, nothing) for layer in self.encoder])

    def step(self, past: Past, ids: Tensor) -> tuple[Tensor, Past]:
        """The next ids (B, T ≥ 1) → logits (B, T, V) and the past grown by them."""
        seen, new = past.pairs[0][0].shape[2], ids.shape[1]
        x = self.dropout(self.embed(self.target_embedding, ids, seen))
        mask = causal_mask(new, seen + new, ids.device)
        grown: list[KeysValues] = []
        for layer, pair in zip(self.encoder, past.pairs, strict=True):
            x, pair, _ = layer.look(x, pair, mask)
            x = layer.transform(x)
            grown.append(pair)
        return self.output(self.encoder_norm(x)), Past(grown)  # (B, T, V)


class MaskedModel(Stack):
    """A sentence with hidden words → logits of what stood there. It reads `batch.source`."""

    def __init__(self, config: ModelConfig, size: int, tied: bool = True) -> None:
        super().__init__(config, size, size, tied)

    def states(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        return self.through(batch.source, padding_mask(batch.source, PAD), trace)


class Classifier(Stack, Reducible):
    """A sentence → logits of its label: the masked model's encoder, and the mean of its states."""

    def __init__(self, config: ModelConfig, size: int, classes: int) -> None:
        super().__init__(config, size, classes)
        self.plan = None

    def states(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        ids = batch.source
        if self.plan is not None:  # each layer goes on with fewer tokens
            x = self.dropout(self.embed(self.target_embedding, ids))
            left = through(self.encoder, x, ids != PAD, self.plan, ids == END, trace)
            return mean(self.encoder_norm(left.states), left.sizes)
        return mean(self.through(ids, padding_mask(ids, PAD), trace), ids != PAD)


@dataclass(frozen=True)
class Prefix:
    """What the stack made of the source: the keys and values of each layer."""

    pairs: list[KeysValues]
    mask: Tensor  # (B, 1, 1, S)


class PrefixModel(Stack):
    """Translation in one stack: the source sees itself, the target sees the source and its own past (prefix mask).

    Both sides count their positions from 0 and are told apart by a learned vector each, so that a sentence is the
    same however far its companions pad it.
    """

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        if tie == "all" and source_size != target_size:
            raise ValueError(
                f"tie 'all' needs one vocabulary, not {source_size} and {target_size} entries"
            )
        super().__init__(config, target_size, target_size, tie != "none")
        added = nn.ModuleDict({"segment_embedding": nn.Embedding(2, config.width)})
        if tie != "all":
            added["source_embedding"] = nn.Embedding(source_size, config.width)
        initialise(added, config)
        self.segment_embedding: Any = added["segment_embedding"]
        self.source_embedding = self.target_embedding if tie == "all" else added["source_embedding"]

    def states(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        return self._written(self.start(self.encode(batch.source, trace)), batch.target_in, trace)[
            0
        ]

    def encode(self, source: Tensor, trace: Trace | None = None) -> Prefix:
        """Source ids (B, S), all of which see all."""
        mask = padding_mask(source, PAD)
        x = self._segment(self.source_embedding, source, SOURCE)
        pairs: list[KeysValues] = []
        for i, layer in enumerate(self.encoder):
            x, pair, weights = layer.look(x, None, mask, need_weights=wanted(trace))
            x = layer.transform(x)
            keep(trace, f"encoder.{i}.self", weights)
            pairs.append(pair)
        return Prefix(pairs, mask)

    def start(self, prefix: Prefix) -> State:
        """The state before the first target token."""
        return State(
            prefix.pairs,
            prefix.mask,
            [(keys[:, :, :0], values[:, :, :0]) for keys, values in prefix.pairs],
        )

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them."""
        states, state = self._written(state, ids, trace)
        return self.output(states), state

    def _written(self, state: State, ids: Tensor, trace: Trace | None) -> tuple[Tensor, State]:
        (sentences, _, _, length), (hypotheses, new) = state.memory_mask.shape, ids.shape
        seen, each = (
            state.past[0][0].shape[2],
            hypotheses // max(1, sentences),
        )  # hypotheses of a sentence
        causal = causal_mask(new, seen + new, ids.device).expand(hypotheses, 1, -1, -1)
        source = state.memory_mask.repeat_interleave(each, 0).expand(-1, -1, new, -1)
        mask = torch.cat([source, causal], dim=3)  # (B, 1, T, S + T): rows of the prefix mask
        x = self._segment(self.target_embedding, ids, TARGET, seen)
        past: list[KeysValues] = []
        for i, (layer, memory, written) in enumerate(
            zip(self.encoder, state.memory, state.past, strict=True)
        ):
            both = zip(memory, written, strict=True)
            keys, values = (
                torch.cat([read.repeat_interleave(each, 0), own], dim=2) for read, own in both
            )
            x, grown, weights = layer.look(x, (keys, values), mask, need_weights=wanted(trace))
            x = layer.transform(x)
            past.append((grown[0][:, :, length:], grown[1][:, :, length:]))
            if (
                weights is not None
            ):  # one softmax over both sides, shown as what a decoder's two attentions are
                keep(trace, f"decoder.{i}.cross", weights[..., :length])
                keep(trace, f"decoder.{i}.self", weights[..., length:])
        return self.encoder_norm(x), State(state.memory, state.memory_mask, past)  # (B, T, D)

    def _segment(self, embedding: nn.Module, ids: Tensor, segment: int, start: int = 0) -> Tensor:
        x = (
            self.embed(embedding, ids, start)
            + self.segment_embedding.weight[segment] * self.width**0.5
        )
        return self.dropout(x)  # type: ignore[no-any-return]


def mean(states: Tensor, sizes: Tensor) -> Tensor:
    """The mean state of each sentence (B, 1, D), where a place counts as `sizes` (B, S) tokens, 0 at padding."""
    states = states.masked_fill((sizes == 0)[..., None], 0.0) * sizes[..., None]
    return states.sum(1, keepdim=True) / sizes.sum(1)[:, None, None]
