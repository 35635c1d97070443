"""Our Transformer as CTranslate2 describes one: every weight in its place."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from seq2see.ct2.engine import library, pieces, refuse_search
from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.scores import Bilinear, Projected, dot
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe
from seq2see.text.tokenizers import Tokenizers

KNOWN = {
    "kind": ("transformer",),
    "norm": ("pre", "post"),
    "score": ("scaled_dot", "dot", "unscaled", "bilinear", "projected"),
    "positions": ("sinusoidal", "learned", "none"),
}
MOST_POSITIONS = 1 << 16
ONE_LETTER = 32  # tokens that a single letter may have, whatever data.max_length is: it is not cut


def refuse(recipe: Recipe, tokenizers: Tokenizers) -> None:
    """Name what a recipe says and CTranslate2 cannot do just so."""
    for key, known in KNOWN.items():
        if (value := getattr(recipe.model, key)) not in known:
            only = f"only {', '.join(known)} can" + (
                ": it has no layers for the others" if key == "kind" else ""
            )
            raise InputError(f"model.{key} = {value!r} cannot be exported to CTranslate2; {only}")
    if recipe.reduce.kind != "none":
        raise InputError(
            f"reduce.kind = {recipe.reduce.kind!r} cannot be exported to CTranslate2; only none can"
        )
    if recipe.model.attention_width not in (None, recipe.model.width):
        raise InputError(
            f"model.attention_width = {recipe.model.attention_width} cannot be exported to CTranslate2: "
            f"it takes model.width = {recipe.model.width} for the width of all heads"
        )
    if (length := positions(recipe)) > MOST_POSITIONS:
        raise InputError(
            f"data.max_length = {recipe.data.max_length} with decode.max_ratio = {recipe.decode.max_ratio} allows "
            f"translations of {length} tokens; CTranslate2 needs a table of them, exported up to {MOST_POSITIONS}"
        )
    for side in (tokenizers.source, tokenizers.target):
        names = pieces(side)
        if len(set(names)) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise InputError(
                f"the vocabulary has {twice!r} twice; CTranslate2 knows a piece by its name"
            )
    refuse_search(Search.of(recipe))


def positions(recipe: Recipe) -> int:
    """How many positions the longest source or translation takes, </s> included."""
    if recipe.model.positions == "learned":
        return recipe.model.max_positions
    longest = max(recipe.data.max_length, ONE_LETTER)
    return max(longest + 1, Search.of(recipe).limit(longest))


def describe(recipe: Recipe, tokenizers: Tokenizers, model: Transformer) -> Any:
    """CTranslate2's specification of the model, filled with copies of its weights."""
    specs = library().specs
    config = recipe.model
    layers = config.encoder_layers, config.decoder_layers
    spec = specs.TransformerSpec.from_config(
        layers, config.heads, pre_norm=config.norm == "pre", activation=specs.Activation.RELU
    )
    like = torch.zeros(positions(recipe), config.width)
    for part, encodings in (
        (spec.encoder, model.source_positions),
        (spec.decoder, model.target_positions),
    ):
        table = (
            like if encodings is None else encodings(0, like)
        )  # left out, CTranslate2 would use its own
        part.position_encodings.encodings = _copy(table)
    spec.encoder.embeddings[0].weight = _copy(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _copy(model.target_embedding.weight)
    _linear(spec.decoder.projection, model.output)
    for to, encoder_layer in zip(spec.encoder.layer, model.encoder, strict=True):
        _encoder_layer(to, encoder_layer)
    for to, decoder_layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _decoder_layer(to, decoder_layer)
    if config.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder_norm)
        _norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.register_source_vocabulary(pieces(tokenizers.source))
    spec.register_target_vocabulary(pieces(tokenizers.target))
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    return spec


def _encoder_layer(to: Any, layer: EncoderLayer) -> None:
    _self_attention(to.self_attention, layer.self_attention)
    _norm(to.self_attention.layer_norm, layer.self_residual.norm)
    _feed_forward(to.ffn, layer.feed_forward)
    _norm(to.ffn.layer_norm, layer.feed_forward_residual.norm)


def _decoder_layer(to: Any, layer: DecoderLayer) -> None:
    _self_attention(to.self_attention, layer.self_attention)
    _norm(to.self_attention.layer_norm, layer.self_residual.norm)
    _cross_attention(to.attention, layer.cross_attention)
    _norm(to.attention.layer_norm, layer.cross_residual.norm)
    _feed_forward(to.ffn, layer.feed_forward)
    _norm(to.ffn.layer_norm, layer.feed_forward_residual.norm)


def _self_attention(to: Any, attention: MultiHeadAttention) -> None:
    _linear(to.linear[0], *_query_and_key(attention), attention.value)
    _linear(to.linear[1], attention.output)
    _scale(to, attention)


def _cross_attention(to: Any, attention: MultiHeadAttention) -> None:
    query, key = _query_and_key(attention)
    _linear(to.linear[0], query)
    _linear(to.linear[1], key, attention.value)
    _linear(to.linear[2], attention.output)
    _scale(to, attention)


def _query_and_key(attention: MultiHeadAttention) -> tuple[nn.Linear, nn.Linear]:
    """The projections, with the score's own matrices multiplied in: (x A) W = x (A W)."""
    if isinstance(attention.score, Bilinear):
        return _folded(attention.query, attention.score.weight), attention.key
    if isinstance(attention.score, Projected):
        return _folded(attention.query, attention.score.query_weight), _folded(
            attention.key, attention.score.key_weight
        )
    return attention.query, attention.key


def _folded(projection: nn.Linear, weight: Tensor) -> nn.Linear:
    """`projection`, then the matrix (K, K) of each head's part of it."""
    whole = nn.Linear(projection.in_features, projection.out_features, projection.bias is not None)
    with torch.no_grad():
        exact = torch.block_diag(*weight.double()).T  # type: ignore[no-untyped-call]
        whole.weight.copy_(exact @ projection.weight.double())
        if projection.bias is not None:
            whole.bias.copy_(exact @ projection.bias.double())
    return whole


def _scale(to: Any, attention: MultiHeadAttention) -> None:
    if attention.score is dot:
        to.queries_scale = 1.0  # in place of CTranslate2's 1/√K


def _feed_forward(to: Any, feed_forward: FeedForward) -> None:
    _linear(to.linear_0, feed_forward.expand)
    _linear(to.linear_1, feed_forward.contract)


def _norm(to: Any, norm: Any) -> None:
    to.gamma, to.beta = _copy(norm.weight), _copy(norm.bias)


def _linear(to: Any, *layers: nn.Linear) -> None:
    """One matrix of several, below each other."""
    to.weight = _copy(*(layer.weight for layer in layers))
    if layers[0].bias is not None:
        to.bias = _copy(*(layer.bias for layer in layers))


def _copy(*tensors: Tensor) -> npt.NDArray[np.float32]:
    # Never the weights themselves: quantizing writes over what it is given.
    return np.concatenate([tensor.detach().numpy() for tensor in tensors])
