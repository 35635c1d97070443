"""What hypotheses of one sentence share, its memory, and what each has for itself, its past."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seq2see.layers.attention import attend
from seq2see.layers.scores import Score
from seq2see.layers.trace import Trace, keep


@dataclass(frozen=True)
class Memory:
    """What an encoder without self-attention made of the source; there is one head."""

    keys: Tensor  # (B, S, D)
    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, 1, S)

    def look(
        self, query: Tensor, score: Score, dropout: float = 0.0, trace: Trace | None = None
    ) -> Tensor:
        """What the queries (N, T, D) of N hypotheses find, as many of them for each of the B sentences."""
        sentences = len(self.keys)  # all hypotheses of one look at the same memory
        asked = query.reshape(
            sentences, 1, len(query) // max(1, sentences) * query.shape[1], query.shape[2]
        )
        keys, values = self.keys[:, None], self.values[:, None]  # (B, 1, S, D)
        wanted = trace is not None
        found, weights = attend(
            asked, keys, values, self.mask, score=score, dropout=dropout, need_weights=wanted
        )
        keep(trace, "cross", weights)
        return found.reshape(*query.shape[:2], values.shape[3])  # (N, T, D)

    def select(self, rows: Tensor) -> "Memory":
        """Keep, repeat or reorder sentences."""
        return Memory(*(each.index_select(0, rows) for each in (self.keys, self.values, self.mask)))


@dataclass(frozen=True)
class State:
    """All that the next decoding step of such a model needs."""

    memory: Memory  # of B sentences
    past: list[
        Tensor
    ]  # (N, …) each: of B hypotheses, or of as many for each sentence, side by side
    seen: int = 0  # target tokens so far

    def select(self, rows: Tensor) -> "State":
        """Keep, repeat or reorder hypotheses; those of a sentence share its memory while they are equally many."""
        past = [each.index_select(0, rows) for each in self.past]
        kept = sentences_of(rows, len(self.past[0]), len(self.memory.mask))
        return replace(
            self, past=past, memory=self.memory if kept is None else self.memory.select(kept)
        )


def sentences_of(rows: Tensor, hypotheses: int, sentences: int) -> Tensor | None:
    """Whose memory the chosen hypotheses look at, once each while all have equally many; None for all as it is."""
    each = rows // max(1, hypotheses // max(1, sentences))  # the sentence of each hypothesis
    kept, counts = torch.unique_consecutive(each, return_counts=True)
    kept = each if (counts != counts[:1]).any() else kept
    return None if torch.equal(kept, torch.arange(sentences, device=kept.device)) else kept
