"""Models that grew out of the Transformer: its encoder's layers in one stack, under three masks.

Causal: each position attends to those before it, and the stack generates (Radford et al., 2018).
Padding alone: all positions attend to all, and it predicts hidden words (Devlin et al., 2019).
Prefix: the source attends to itself, the target to the source and its own past, and it translates
(Dong et al., 2019; Raffel et al., 2020).
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.layers.shapes import PADDED, KeysValues, Layout, Rows
from seq2see.layers.trace import Trace, at, keep, wanted
from seq2see.models import parts
from seq2see.models.parts import State
from seq2see.recipe.network import ModelConfig
from seq2see.text.vocab import PAD

SOURCE, TARGET = 0, 1  # segments of the prefix model


class Stack(nn.Module):
    """Embeddings, a stack of encoder layers and an output matrix.

    Weights bear their names in the Transformer, so that each can start from the other's.
    """

    def __init__(self, config: ModelConfig, size: int, classes: int, tied: bool = False) -> None:
        super().__init__()
        self.width = config.width
        self.target_positions: Any = parts.positions_of(config)
        self.target_embedding = nn.Embedding(size, config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder: Any = self.layers(config)
        self.encoder_norm = parts.last_norm(config)
        self.output = nn.Linear(config.width, classes)
        parts.initialise(self, config)
        if tied:
            self.output.weight = self.target_embedding.weight

    def layers(self, config: ModelConfig) -> nn.Module:
        return nn.ModuleList(parts.encoder_layer(config) for _ in range(config.encoder_layers))

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Compute the logits (B, T, V) of every id of `batch.target_out`."""
        return self.output(self.states(batch, trace))  # type: ignore[no-any-return]

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        """Compute the states (B, T, D) behind the logits, or (N, D) of `RealRows`."""
        raise NotImplementedError

    def embed(self, embedding: nn.Module, ids: Tensor, start: int = 0) -> Tensor:
        x: Tensor = embedding(ids) * self.width**0.5  # (B, T, D)
        return x if self.target_positions is None else x + self.target_positions(start, x)

    def encode_rows(self, ids: Tensor, mask: Tensor, trace: Trace | None, layout: Layout) -> Tensor:
        """Run ids (B, T) through all layers."""
        rows = layout(ids != PAD)
        x = rows.gather(self.dropout(self.embed(self.target_embedding, ids)))
        for i, layer in enumerate(self.encoder):
            x = layer(x, mask, at(trace, f"encoder.{i}"), rows=rows)
        return self.encoder_norm(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Past:
    """Keys and values of the ids read so far, per layer."""

    pairs: list[KeysValues]

    def select(self, rows: Tensor) -> "Past":
        """Keep, repeat or reorder texts."""
        return Past([pair.select(rows) for pair in self.pairs])


class CausalModel(Stack):
    """A language model: ids so far → logits of the next id. It reads `batch.target_in`."""

    def __init__(self, config: ModelConfig, size: int, tied: bool = True) -> None:
        super().__init__(config, size, size, tied)

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        # Padding stands at the end, where no real position attends to it.
        mask = causal_mask(batch.target_in.shape[1], device=batch.target_in.device)
        return self.encode_rows(batch.target_in, mask, trace, layout)

    def start(self, texts: int) -> Past:
        """Begin a number of texts, all empty."""
        nothing = self.output.weight.new_zeros(texts, 0, self.width)
        return Past([layer.self_attention.project(nothing, nothing) for layer in self.encoder])

    def step(self, past: Past, ids: Tensor) -> tuple[Tensor, Past]:
        """Read the next ids (B, T ≥ 1); return logits (B, T, V) and the past extended by them."""
        past = Past([copy(pair) for pair in past.pairs])
        seen = past.pairs[0].keys.shape[2]
        x = self.dropout(self.embed(self.target_embedding, ids, seen))
        mask = causal_mask(ids.shape[1], seen + ids.shape[1], ids.device)
        for layer, cache in zip(self.encoder, past.pairs, strict=True):
            x = layer(x, mask, cache=cache)
        return self.output(self.encoder_norm(x)), past  # (B, T, V)


class MaskedModel(Stack):
    """A sentence with hidden words → logits of the words. It reads `batch.source`."""

    def __init__(self, config: ModelConfig, size: int, tied: bool = True) -> None:
        super().__init__(config, size, size, tied)

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        ids = batch.source
        states = self.encode_rows(ids, padding_mask(ids, PAD), trace, layout)
        # All words are read, but only hidden ones are targets.
        return layout(batch.target_out != PAD).gather(layout(ids != PAD).pad(states))


class Classifier(Stack):
    """A sentence → logits of its label: the masked model's encoder, and the mean of its states."""

    def layers(self, config: ModelConfig) -> nn.Module:
        return parts.encoder(config, special="last")  # </s>

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        ids = batch.source
        rows = layout(ids != PAD)
        x = rows.gather(self.dropout(self.embed(self.target_embedding, ids)))
        memory = self.encoder(x, padding_mask(ids, PAD), trace, rows)
        states = memory.rows.pad(self.encoder_norm(memory.states))
        pooled = mean(states, (ids != PAD) if memory.sizes is None else memory.sizes)  # (B, 1, D)
        return layout(torch.ones_like(ids[:, :1], dtype=torch.bool)).gather(pooled)


@dataclass(frozen=True)
class Prefix:
    """The source as the stack has read it: keys and values of each layer, with their mask."""

    pairs: list[KeysValues]


class PrefixModel(Stack):
    """Translation in one stack: the target attends to the source and its own past (prefix mask).

    Both sides count their positions from 0 and are told apart by a learned vector each, so that
    the padding of a source does not shift the positions of its target.
    """

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        parts.check_tie(tie, source_size, target_size)
        super().__init__(config, target_size, target_size, tie != "none")
        added = nn.ModuleDict({"segment_embedding": nn.Embedding(2, config.width)})
        if tie != "all":
            added["source_embedding"] = nn.Embedding(source_size, config.width)
        parts.initialise(added, config)
        self.segment_embedding: Any = added["segment_embedding"]
        self.source_embedding: Any = self.target_embedding
        if tie != "all":
            self.source_embedding = added["source_embedding"]

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        prefix = self.encode(batch.source, trace, layout)
        rows = layout(batch.target_in != PAD)
        return self._run(State(prefix.pairs, []), batch.target_in, trace, rows)

    def encode(self, source: Tensor, trace: Trace | None = None, layout: Layout = Rows) -> Prefix:
        """Read source ids (B, S), all of which attend to each other."""
        mask = padding_mask(source, PAD)
        rows = layout(source != PAD)
        x = rows.gather(self._embed(self.source_embedding, source, SOURCE))
        nothing = self.output.weight.new_zeros(len(source), 0, self.width)
        pairs: list[KeysValues] = []
        for i, layer in enumerate(self.encoder):
            cache = layer.self_attention.project(nothing, nothing)
            x = layer(x, mask, at(trace, f"encoder.{i}"), cache=cache, rows=rows)
            pairs.append(replace(cache, mask=mask))
        return Prefix(pairs)

    def start(self, prefix: Prefix) -> State:
        """Begin with an empty past."""
        past = [KeysValues(pair.keys[:, :, :0], pair.values[:, :, :0]) for pair in prefix.pairs]
        return State(prefix.pairs, past)

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """Read the next target ids (B, T ≥ 1); return logits (B, T, V) and the state after them."""
        state = State(state.memory, [copy(pair) for pair in state.past])
        return self.output(self._run(state, ids, trace)), state

    def _run(self, state: State, ids: Tensor, trace: Trace | None, rows: Rows = PADDED) -> Tensor:
        """Run target ids (B, T) through the stack, which extends the past of the state."""
        source_mask = state.memory[0].mask
        assert source_mask is not None
        length = source_mask.shape[3]
        seen = state.past[0].keys.shape[2] if state.past else 0
        hypotheses, new = ids.shape
        beams = hypotheses // max(1, len(source_mask))
        causal = causal_mask(new, seen + new, ids.device).expand(hypotheses, 1, -1, -1)
        source = source_mask.repeat_interleave(beams, 0).expand(-1, -1, new, -1)
        mask = torch.cat([source, causal], dim=3)  # (B, 1, T, S + T): rows of the prefix mask
        x = rows.gather(self._embed(self.target_embedding, ids, TARGET, seen))
        for i, layer in enumerate(self.encoder):
            memory = state.memory[i]
            cache = KeysValues(
                memory.keys.repeat_interleave(beams, 0), memory.values.repeat_interleave(beams, 0)
            )
            if state.past:
                cache.extend(state.past[i])
            seen_by_layer = Trace() if wanted(trace) else None
            x = layer(x, mask, seen_by_layer, cache=cache, rows=rows)
            if state.past:
                past = KeysValues(cache.keys[:, :, length:], cache.values[:, :, length:])
                state.past[i] = past
            if seen_by_layer is not None:
                # One softmax over both sides, shown as the two attentions of a decoder.
                weights = seen_by_layer.weights["self"]
                keep(trace, f"decoder.{i}.cross", weights[..., :length])
                keep(trace, f"decoder.{i}.self", weights[..., length:])
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def _embed(self, embedding: nn.Module, ids: Tensor, segment: int, start: int = 0) -> Tensor:
        x = self.embed(embedding, ids, start)
        x = x + self.segment_embedding.weight[segment] * self.width**0.5
        return self.dropout(x)  # type: ignore[no-any-return]


def mean(states: Tensor, sizes: Tensor) -> Tensor:
    """Average the states (B, S, D) to (B, 1, D), each weighted by its size (B, S), 0 at padding."""
    states = states.masked_fill((sizes == 0)[..., None], 0.0) * sizes[..., None]
    return states.sum(1, keepdim=True) / sizes.sum(1)[:, None, None]
