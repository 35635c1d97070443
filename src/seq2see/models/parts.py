"""What the [model] of a recipe is made of: layers, positions, and the weights they begin with."""

from torch import nn

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.positions import LearnedPositions, Positions
from seq2see.recipe.schema import ModelConfig


def encoder_layer(config: ModelConfig) -> EncoderLayer:
    looking, thinking = _attention(config, config.positions == "rotary"), _feed_forward(config)
    return EncoderLayer(looking, thinking, dropout=config.dropout, norm=config.norm)


def decoder_layer(config: ModelConfig) -> DecoderLayer:
    looking, across = _attention(config, config.positions == "rotary"), _attention(config)
    return DecoderLayer(
        looking, across, _feed_forward(config), dropout=config.dropout, norm=config.norm
    )


def _attention(config: ModelConfig, rotary: bool = False) -> MultiHeadAttention:
    return MultiHeadAttention(config.width, config.heads, rotary=rotary, **config.attention)


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(config.width, config.inner, config.dropout)


def last_norm(config: ModelConfig) -> nn.Module:
    """Pre-norm leaves the last residual unnormed, so each stack ends with one more norm."""
    return nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()


def positions_of(config: ModelConfig) -> Positions | LearnedPositions | None:
    """What is added to the embeddings; rotary positions turn queries and keys instead."""
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.width)
    return Positions(config.width) if config.positions == "sinusoidal" else None


def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Xavier for matrices, zeros for biases; embeddings as the recipe says."""
    for name, parameter in model.named_parameters():
        if "embedding" in name and config.embedding_init == "normal":
            # Times √d this has variance one, like the encodings; as output matrix it gives logits of variance one.
            nn.init.normal_(parameter, std=config.width**-0.5)
        elif parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    for attention in (
        module for module in model.modules() if isinstance(module, MultiHeadAttention)
    ):
        attention.even_out()
