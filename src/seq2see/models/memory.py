"""Encoder–decoders without self-attention: their memory, decoding state and common methods."""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import attend
from seq2see.layers.scores import Score
from seq2see.layers.shapes import Layout, Rows
from seq2see.layers.trace import Trace, keep
from seq2see.models.parts import sentences_of
from seq2see.text.specials import PAD


@dataclass(frozen=True)
class Memory:
    """Encoded source, attended to with a single head."""

    keys: Tensor  # (B, S, D)
    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S)

    def attend(
        self, query: Tensor, score: Score, dropout: float = 0.0, trace: Trace | None = None
    ) -> Tensor:
        """Compute the context (N, T, D) of the queries (N, T, D) of N hypotheses.

        The hypotheses of a sentence stand side by side, equally many for each of the B sentences.
        """
        sentences = len(self.keys)
        targets = len(query) // max(1, sentences) * query.shape[1]
        grouped = query.reshape(sentences, 1, targets, query.shape[2])
        keys, values = self.keys[:, None], self.values[:, None]  # (B, 1, S, D)
        need = trace is not None
        context, weights = attend(
            grouped, keys, values, self.mask, score=score, dropout=dropout, need_weights=need
        )
        keep(trace, "cross", weights)
        return context.reshape(*query.shape[:2], values.shape[3])  # (N, T, D)

    def select(self, rows: Tensor) -> "Memory":
        """Keep, repeat or reorder sentences."""
        return Memory(*(x.index_select(0, rows) for x in (self.keys, self.values, self.mask)))


@dataclass(frozen=True)
class State:
    """Memory and recurrent or convolutional past of the hypotheses."""

    memory: Memory  # of B sentences
    past: list[Tensor]  # (N, …) each, of N hypotheses, equally many for each sentence
    seen: int = 0  # target tokens so far

    def select(self, rows: Tensor) -> "State":
        """Keep, repeat or reorder hypotheses; those of a sentence share its memory."""
        past = [x.index_select(0, rows) for x in self.past]
        kept = sentences_of(rows, len(self.past[0]), len(self.memory.mask))
        memory = self.memory if kept is None else self.memory.select(kept)
        return replace(self, past=past, memory=memory)


class EncoderDecoder(nn.Module):
    """Teacher forcing and decoding by one method, `run`."""

    output: nn.Linear

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory."""
        raise NotImplementedError

    def start(self, memory: Memory) -> State:
        """The state before the first target token."""
        raise NotImplementedError

    def run(self, state: State, ids: Tensor, trace: Trace | None) -> tuple[Tensor, State]:
        """Run target ids (B, T) through the decoder: states (B, T, D), and the state after them."""
        raise NotImplementedError

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Compute the logits (B, T, V) of every target token, given those before it."""
        return self.output(self.states(batch, trace))  # type: ignore[no-any-return]

    def states(self, batch: Batch, trace: Trace | None = None, layout: Layout = Rows) -> Tensor:
        """Compute the states (B, T, D) under teacher forcing, or (N, D) of `RealRows`."""
        state = self.start(self.encode(batch.source, trace))
        x, _ = self.run(state, batch.target_in, trace)
        return layout(batch.target_in != PAD).gather(x)

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """Read the next target ids (B, T ≥ 1); return logits (B, T, V) and the state after them."""
        x, state = self.run(state, ids, trace)
        return self.output(x), state
