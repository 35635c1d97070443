"""Recurrent encoder–decoders, with or without attention, on PyTorch's RNN, LSTM and GRU.

Without attention (Sutskever et al., 2014; Cho et al., 2014) the decoder knows the source only as
one vector, the encoder's last state: the bottleneck. With it (Bahdanau et al., 2015; Luong et al.,
2015) the decoder attends to all encoder states.
"""

from typing import Any

import torch
from torch import Tensor, nn

from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import padding_mask
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.memory import EncoderDecoder, Memory, State
from seq2see.models.parts import check_tie
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

CELLS: dict[str, Any] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Bidirectional(nn.Module):
    """Encoder layer that reads the sentence in both directions, each with half of the width."""

    def __init__(self, cell: Any, width: int) -> None:
        super().__init__()
        self.forwards = cell(width, width // 2, batch_first=True)
        self.backwards = cell(width, width // 2, batch_first=True)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (B, S, D) → (B, S, D); `order` (B, S) reverses each sentence."""
        forwards, _ = self.forwards(x)
        backwards, _ = self.backwards(_reorder(x, order))
        return torch.cat([forwards, _reorder(backwards, order)], dim=-1)


class Recurrent(EncoderDecoder):
    """Source ids → memory; memory and target ids so far → logits of the next id."""

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, tie: str = "none"
    ) -> None:
        super().__init__()
        check_tie(tie, source_size, target_size)
        self.width = config.width
        self.attends = config.attend
        self.attention_dropout = config.attention_dropout
        self.target_embedding = nn.Embedding(target_size, config.width)
        self.source_embedding = (
            self.target_embedding if tie == "all" else nn.Embedding(source_size, config.width)
        )
        self.dropout = Dropout(config.dropout)
        cell = CELLS[config.kind]
        parts = 2 if config.kind == "lstm" else 1  # an LSTM has a hidden state and a cell state
        self.encoder: Any = nn.ModuleList(
            Bidirectional(cell, config.width) for _ in range(config.encoder_layers)
        )
        self.bridge = nn.Linear(config.width, config.decoder_layers * parts * config.width)
        inputs = [config.width] * config.decoder_layers
        if not config.attend:
            inputs[0] *= 2  # the embedding and the last encoder state
        self.decoder: Any = nn.ModuleList(
            cell(size, config.width, batch_first=True) for size in inputs
        )
        # The queries are the states themselves, not projections, so `unscaled` equals `dot`.
        self.score = SCORES[config.score](config.width, 1)
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

    def encode(self, source: Tensor, trace: Trace | None = None) -> Memory:
        """Source ids (B, S) → all encoder states or, without attention, the last ones only."""
        mask = padding_mask(source, PAD)
        x = self.embed(self.source_embedding, source)
        order = _reversed_order(mask.sum(-1)[:, 0], source.shape[1])
        for layer in self.encoder:
            x = layer(self.dropout(x), order)
        memory = Memory(x, x, mask)
        if self.attends:
            return memory
        last = _last_states(memory)[:, None]  # (B, 1, D)
        return Memory(last, last, torch.ones_like(mask[..., :1]))

    def start(self, memory: Memory) -> State:
        """Initial decoder states: tanh(W · last encoder states), for each layer of the decoder."""
        initial = self.bridge(_last_states(memory)).tanh()
        return State(memory, list(initial.split(self.width, dim=-1)))

    def run(self, state: State, ids: Tensor, trace: Trace | None) -> tuple[Tensor, State]:
        """Run target ids (B, T) through the decoder: states (B, T, D), and the state after them.

        The recurrence runs over all T first, then one attention serves all of them:
        h̃ = tanh(W [context; h]) (Luong et al., 2015, equation 5). Without attention the context
        is the encoder's last state, which is also part of every input (Cho et al., 2014).
        """
        x = self.embed(self.target_embedding, ids)  # (B, T, D)
        if not self.attends:
            beam = len(ids) // max(1, len(state.memory.values))  # hypotheses per sentence
            context = state.memory.values.repeat_interleave(beam, dim=0)
            x = torch.cat([x, context.expand_as(x)], dim=-1)  # (B, T, 2 × D)
        past: list[Tensor] = []
        parts = len(state.past) // len(self.decoder)
        for layer in self.decoder:
            x, after = _run_layer(layer, self.dropout(x), state.past[len(past) :][:parts])
            past += after
        at = trace.at("decoder.0") if trace is not None and self.attends else None
        dropout = self.attention_dropout if self.training else 0.0
        x = x.to(state.memory.keys)  # autocast computes some recurrences in bfloat16
        context = state.memory.attend(x, self.score, dropout, at)
        x = self.dropout(self.readout(torch.cat([context, x], dim=-1)).tanh())
        return x, State(state.memory, past, state.seen + ids.shape[1])

    def embed(self, embedding: nn.Module, ids: Tensor) -> Tensor:
        x: Tensor = embedding(ids) * self.width**0.5  # (B, T, D), with variance one
        return x


def _run_layer(layer: Any, x: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Run a decoder layer on x (B, T, D) from past states (B, D); return outputs, new states."""
    initial = tuple(part[None].contiguous() for part in past)  # PyTorch wants (layers, B, D)
    x, final = layer(x, initial if len(initial) > 1 else initial[0])
    parts = final if isinstance(final, tuple) else (final,)
    return x, [part[0] for part in parts]


def _reversed_order(lengths: Tensor, longest: int) -> Tensor:
    """Positions of each sentence from last to first (B, S), with the padding still at the end."""
    position = torch.arange(longest, device=lengths.device).expand(len(lengths), -1)
    return torch.where(position < lengths, lengths - 1 - position, position)


def _reorder(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order[:, :, None].expand(-1, -1, x.shape[2]))  # (B, S, D)


def _last_states(memory: Memory) -> Tensor:
    """Final state of each direction: forwards at the last word, backwards at the first."""
    last = memory.mask.sum(-1)[:, 0] - 1  # (B, 1)
    forwards, backwards = memory.values.chunk(2, dim=-1)
    return torch.cat([_reorder(forwards, last)[:, 0], backwards[:, 0]], dim=-1)  # (B, D)


@torch.no_grad()
def _initialise(cell: nn.RNNBase) -> None:
    """Initialise each gate; orthogonal recurrent weights preserve a signal over many steps."""
    for name, parameter in cell.named_parameters():
        for gate, part in enumerate(torch.unflatten(parameter, 0, (-1, cell.hidden_size))):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(part)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(part)
            else:
                # The second gate of LSTM and GRU preserves the state: it starts open
                # (Jozefowicz et al., 2015).
                nn.init.constant_(part, 1.0 if gate == 1 and name.startswith("bias_ih") else 0.0)
