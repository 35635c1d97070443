"""Parts of the models: layers by recipe, memory and decoding state, initial weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seq2see.layers.attention import Maybe, MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.positions import LearnedPositions, Positions
from seq2see.layers.shapes import PADDED, KeysValues, Rows
from seq2see.layers.trace import Trace, at
from seq2see.recipe.network import ModelConfig


@dataclass(frozen=True)
class Memory:
    """Output of an encoder."""

    states: Tensor  # (B, S, D)
    mask: Maybe  # (B, 1, 1, S), True = may attend
    bias: Maybe = None  # (B, 1, 1, S), added to scores where a state stands for several tokens
    sizes: Maybe = None  # (B, S), how many
    rows: Rows = PADDED

    def projected(self, attentions: Sequence[MultiHeadAttention]) -> list[KeysValues]:
        """Compute the keys and values for the cross-attention of each layer."""
        pairs = [cross.project(self.states, self.states, self.rows) for cross in attentions]
        return [replace(pair, mask=self.mask, bias=self.bias) for pair in pairs]


@dataclass(frozen=True)
class State:
    """Keys and values, per layer, that the next decoding step attends to."""

    memory: list[KeysValues]  # of B sentences
    past: list[KeysValues]  # of the hypotheses, equally many per sentence; [] for none

    def select(self, rows: Tensor) -> "State":
        """Keep, repeat or reorder hypotheses."""
        past = [pair.select(rows) for pair in self.past]
        kept = sentences_of(rows, len(self.past[0].keys), len(self.memory[0].keys))
        if kept is None:
            return replace(self, past=past)
        return State([pair.select(kept) for pair in self.memory], past)


def sentences_of(rows: Tensor, hypotheses: int, sentences: int) -> Tensor | None:
    """Sentences whose memory the hypotheses need, once each if all have equally many; None: all."""
    owners = rows // max(1, hypotheses // max(1, sentences))
    kept, counts = torch.unique_consecutive(owners, return_counts=True)
    kept = owners if (counts != counts[:1]).any() else kept
    return None if torch.equal(kept, torch.arange(sentences, device=kept.device)) else kept


class Encoder(nn.ModuleList):
    """A stack of encoder layers for sequences whose `special` token is "first", "last" or None."""

    def __init__(self, layers: Iterable[nn.Module], special: str | None) -> None:
        super().__init__(layers)
        self.special = special

    def forward(
        self, x: Tensor, mask: Maybe = None, trace: Trace | None = None, rows: Rows = PADDED
    ) -> Memory:
        for i, layer in enumerate(self):
            x = layer(x, mask, at(trace, f"encoder.{i}"), rows=rows)
        return Memory(x, mask, rows=rows)


def encoder(config: ModelConfig, special: str | None) -> Encoder:
    return Encoder((encoder_layer(config) for _ in range(config.encoder_layers)), special)


def encoder_layer(config: ModelConfig) -> EncoderLayer:
    attention = _attention(config, config.positions == "rotary")
    feed_forward = FeedForward(config.width, config.inner, config.dropout)
    return EncoderLayer(attention, feed_forward, dropout=config.dropout, norm=config.norm)


def decoder_layer(config: ModelConfig) -> DecoderLayer:
    self_attention = _attention(config, config.positions == "rotary")
    cross_attention = _attention(config)
    feed_forward = FeedForward(config.width, config.inner, config.dropout)
    parts = (self_attention, cross_attention, feed_forward)
    return DecoderLayer(*parts, dropout=config.dropout, norm=config.norm)


def _attention(config: ModelConfig, rotary: bool = False) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width,
        config.heads,
        inner=config.attention_width,
        bias=config.attention_bias,
        dropout=config.attention_dropout,
        score=config.score,
        rotary=rotary,
    )


def check_tie(tie: str, source: int, target: int) -> None:
    if tie == "all" and source != target:
        raise ValueError(f"tie 'all' needs one vocabulary, not {source} and {target} entries")


def last_norm(config: ModelConfig) -> nn.Module:
    """Norm after the last layer, whose residual pre-norm leaves unnormed."""
    return nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()


def positions_of(config: ModelConfig) -> Positions | LearnedPositions | None:
    """Encodings added to the embeddings; rotary positions act inside the attention instead."""
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.width)
    return Positions(config.width) if config.positions == "sinusoidal" else None


def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Draw weights: Xavier for matrices, zeros for biases, embeddings by `embedding_init`."""
    for name, parameter in model.named_parameters():
        if "embedding" in name and config.embedding_init == "normal":
            # Times √d this has variance one, like the encodings; tied, it gives such logits.
            nn.init.normal_(parameter, std=config.width**-0.5)
        elif parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.scale_scores()
