"""Recurrent encoder–decoders: one state that is carried from word to word (Sutskever et al., 2014; Cho et al., 2014).

The cells are PyTorch's own. With attention (Bahdanau et al., 2015; Luong et al., 2015) the decoder looks at all states
of the encoder; without, all it learns of the source is one vector, the last state: the bottleneck.
"""

from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import padding_mask
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.memory import Memory, State
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import PAD

CELLS: dict[str, Any] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class BothWays(nn.Module):
    """One layer of the encoder: it reads the sentence from both ends, with half of the width for each way."""

    def __init__(self, cell: Any, width: int) -> None:
        super().__init__()
        self.forwards = cell(width, width // 2, batch_first=True)
        self.backwards = cell(width, width // 2, batch_first=True)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (B, S, D) → (B, S, D); `order` (B, S) turns the words of each sentence round."""
        there, _ = self.forwards(x)
        back, _ = self.backwards(_reorder(x, order))
        return torch.cat([there, _reorder(back, order)], dim=-1)


class Recurrent(nn.Module):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        if tie == "all" and source_size != target_size:
            raise ValueError(
                f"tie 'all' needs one vocabulary, not {source_size} and {target_size} entries"
            )
        self.width, self.attends = config.width, config.attend
        self.attention_dropout = config.attention_dropout
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = (
            self.target_embedding if tie == "all" else nn.Embedding(source_size, config.width)
        )
        self.dropout = Dropout(config.dropout)
        cell, parts = (
            CELLS[config.kind],
            2 if config.kind == "lstm" else 1,
        )  # an LSTM has a hidden and a cell state
        self.encoder: Any = nn.ModuleList(
            BothWays(cell, config.width) for _ in range(config.encoder_layers)
        )
        self.bridge = nn.Linear(config.width, config.decoder_layers * parts * config.width)
        self.decoder: Any = nn.ModuleList(
            cell(
                config.width if i or config.attend else 2 * config.width,
                config.width,
                batch_first=True,
            )
            for i in range(config.decoder_layers)
        )
        self.score = SCORES[config.score](
            config.width, 1
        )  # of the states themselves, so that `unscaled` is `dot`
        self.readout = nn.Linear(2 * config.width, config.width)
        self.output = nn.Linear(config.width, target_size)
        self._initialise()
        if tie != "none":
            self.output.weight = self.target_embedding.weight

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.RNNBase):
                _initialise(module)

    def forward(self, batch: Batch, trace: Trace | None = None) -> Tensor:
        """Logits (B, T, V) of every target token given those before it."""
        return self.step(self.start(self.encode(batch.source, trace)), batch.target_in, trace)[0]

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → memory: the states at all words or, without attention, the last states alone."""
        mask = padding_mask(source, PAD)
        x = self.embed(self.source_embedding, source)
        order = _backwards(mask.sum(-1)[:, 0], source.shape[1])
        for layer in self.encoder:
            x = layer(self.dropout(x), order)
        memory = Memory(x, x, mask)
        if self.attends:
            return memory
        last = _last_states(memory)[:, None]  # (B, 1, D)
        return Memory(last, last, torch.ones_like(mask[..., :1]))

    def start(self, memory: Memory) -> State:
        """The state before the first target token: tanh(W · last states) for each layer of the decoder."""
        begun = self.bridge(_last_states(memory)).tanh()
        return State(memory, list(begun.split(self.width, dim=-1)))

    def step(self, state: State, ids: Tensor, trace: Trace | None = None) -> tuple[Tensor, State]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them.

        First the recurrence over all T, then attention for all of them at once: h̃ = tanh(W [context; h]) (Luong et
        al., 2015, equation 5). Without attention the context is the encoder's last state, which is part of every step's
        input, too (Cho et al., 2014).
        """
        x = self.embed(self.target_embedding, ids)  # (B, T, D)
        if not self.attends:
            each = len(ids) // max(1, len(state.memory.values))  # hypotheses of a sentence
            context = state.memory.values.repeat_interleave(each, dim=0)
            x = torch.cat([x, context.expand_as(x)], dim=-1)  # (B, T, 2 × D)
        past: list[Tensor] = []
        parts = len(state.past) // len(self.decoder)
        for layer in self.decoder:
            x, after = _run(layer, self.dropout(x), state.past[len(past) :][:parts])
            past += after
        at = trace.at("decoder.0") if trace is not None and self.attends else None
        context = state.memory.attend(
            x, self.score, self.attention_dropout if self.training else 0.0, at
        )
        x = self.dropout(self.readout(torch.cat([context, x], dim=-1)).tanh())
        return self.output(x), State(state.memory, past, state.seen + ids.shape[1])  # (B, T, V)

    def embed(self, embedding: nn.Module, ids: Tensor) -> Tensor:
        return embedding(ids) * self.width**0.5  # type: ignore[no-any-return]  # variance one; (B, T, D)


def _run(layer: Any, x: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """One layer of the decoder over x (B, T, D), from its states (B, D) on: its output and its states after x."""
    begin = tuple(
        each[None].contiguous() for each in past
    )  # (1, B, D): PyTorch counts layers there
    x, end = layer(x, begin if len(begin) > 1 else begin[0])
    return x, [each[0] for each in (end if isinstance(end, tuple) else (end,))]


def _backwards(lengths: Tensor, longest: int) -> Tensor:
    """For each sentence its places from the last word to the first; padding stays behind, where nothing reads it."""
    place = torch.arange(longest, device=lengths.device).expand(len(lengths), -1)
    return torch.where(place < lengths, lengths - 1 - place, place)  # (B, S)


def _reorder(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order[:, :, None].expand(-1, -1, x.shape[2]))  # (B, S, D)


def _last_states(memory: Memory) -> Tensor:
    """Where each way through the sentence ends: forwards at its last word, backwards at its first."""
    last = memory.mask.sum(-1)[:, 0] - 1  # (B, 1)
    there, back = memory.values.chunk(2, dim=-1)
    return torch.cat([_reorder(there, last)[:, 0], back[:, 0]], dim=-1)  # (B, D)


@torch.no_grad()
def _initialise(cell: nn.RNNBase) -> None:
    """Each gate by itself: orthogonal from state to state, so that a long way neither swells nor shrinks a signal."""
    for name, parameter in cell.named_parameters():
        for gate, part in enumerate(torch.unflatten(parameter, 0, (-1, cell.hidden_size))):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(part)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(part)
            else:
                # The second gate of LSTM and GRU is the one that keeps: open at first (Jozefowicz et al., 2015).
                nn.init.constant_(part, 1.0 if gate == 1 and name.startswith("bias_ih") else 0.0)
