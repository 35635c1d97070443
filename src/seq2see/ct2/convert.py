"""Conversion of our Transformer to CTranslate2's specification of one."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from seq2see.ct2.engine import pieces, refuse_search
from seq2see.ct2.library import library
from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.scores import Bilinear, Projected, dot
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe
from seq2see.tasks.translator import Translator
from seq2see.text.tokenizers import Tokenizers

SUPPORTED = {
    "kind": ("transformer",),
    "norm": ("pre", "post"),
    "score": ("scaled_dot", "dot", "unscaled", "bilinear", "projected"),
    "positions": ("sinusoidal", "learned", "none"),
}
MOST_POSITIONS = 1 << 16
ONE_CHARACTER = 32  # tokens that one character may have: it is not split, whatever data.max_length


def refuse(recipe: Recipe, tokenizers: Tokenizers) -> None:
    """Name the first setting of a recipe that CTranslate2 cannot reproduce exactly."""
    model = recipe.model
    for key, values in SUPPORTED.items():
        value = getattr(model, key)
        if value not in values:
            reason = ": it has no layers for the others" if key == "kind" else ""
            raise InputError(
                f"model.{key} = {value!r} cannot be exported to CTranslate2; "
                f"only {', '.join(values)} can{reason}"
            )
    if recipe.reduce.kind != "none":
        raise InputError(
            f"reduce.kind = {recipe.reduce.kind!r} cannot be exported to CTranslate2; only none can"
        )
    if model.attention_width not in (None, model.width):
        raise InputError(
            f"model.attention_width = {model.attention_width} cannot be exported to CTranslate2: "
            f"it takes model.width = {model.width} for the width of all heads"
        )
    length = positions(recipe)
    if length > MOST_POSITIONS:
        raise InputError(
            f"data.max_length = {recipe.data.max_length} with "
            f"decode.max_ratio = {recipe.decode.max_ratio} allows translations of {length} tokens; "
            f"CTranslate2 needs a table of positions, exported up to {MOST_POSITIONS}"
        )
    for tokenizer in (tokenizers.source, tokenizers.target):
        _refuse_duplicates(pieces(tokenizer))
    refuse_search(Search.of(recipe))


def _refuse_duplicates(names: list[str]) -> None:
    if len(set(names)) < len(names):
        duplicate = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(
            f"the vocabulary has {duplicate!r} twice; CTranslate2 identifies a piece by its name"
        )


def positions(recipe: Recipe) -> int:
    """Number of positions of the longest source or translation, </s> included."""
    if recipe.model.positions == "learned":
        return recipe.model.max_positions
    longest = max(recipe.data.max_length, ONE_CHARACTER)
    return max(longest + 1, Search.of(recipe).limit(longest))


def convert(translator: Translator, folder: Path, quantization: str) -> None:
    """Write weights and vocabularies in CTranslate2's format."""
    folder.mkdir(exist_ok=True)
    spec = describe(translator.recipe, translator.tokenizers, transformer_of(translator))
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def transformer_of(translator: Translator) -> Transformer:
    """The model of a translator whose recipe was not refused."""
    assert isinstance(translator.model, Transformer)
    return translator.model


def describe(recipe: Recipe, tokenizers: Tokenizers, model: Transformer) -> Any:
    """CTranslate2's specification of the model, filled with copies of its weights."""
    specs = library().specs
    config = recipe.model
    layers = config.encoder_layers, config.decoder_layers
    spec = specs.TransformerSpec.from_config(
        layers, config.heads, pre_norm=config.norm == "pre", activation=specs.Activation.RELU
    )
    zeros = torch.zeros(positions(recipe), config.width)
    for part, encodings in (
        (spec.encoder, model.source_positions),
        (spec.decoder, model.target_positions),
    ):
        # Zeros stand for no positions: without a table, CTranslate2 would add its own.
        table = zeros if encodings is None else encodings(0, zeros)
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
    """Query and key projections with the score's matrices folded in: (x A) W = x (A W)."""
    query, key, score = attention.query, attention.key, attention.score
    if isinstance(score, Bilinear):
        return _folded(query, score.weight), key
    if isinstance(score, Projected):
        return _folded(query, score.query_weight), _folded(key, score.key_weight)
    return query, key


def _folded(projection: nn.Linear, weight: Tensor) -> nn.Linear:
    """`projection` followed by one matrix (K, K) per head, as a single layer."""
    folded = nn.Linear(projection.in_features, projection.out_features, projection.bias is not None)
    with torch.no_grad():
        exact = torch.block_diag(*weight.double()).T  # type: ignore[no-untyped-call]
        folded.weight.copy_(exact @ projection.weight.double())
        if projection.bias is not None:
            folded.bias.copy_(exact @ projection.bias.double())
    return folded


def _scale(to: Any, attention: MultiHeadAttention) -> None:
    if attention.score is dot:
        to.queries_scale = 1.0  # in place of CTranslate2's 1/√K


def _feed_forward(to: Any, feed_forward: FeedForward) -> None:
    _linear(to.linear_0, feed_forward.expand)
    _linear(to.linear_1, feed_forward.contract)


def _norm(to: Any, norm: Any) -> None:
    to.gamma = _copy(norm.weight)
    to.beta = _copy(norm.bias)


def _linear(to: Any, *layers: nn.Linear) -> None:
    """Stack the matrices of several layers into one."""
    to.weight = _copy(*(layer.weight for layer in layers))
    if layers[0].bias is not None:
        to.bias = _copy(*(layer.bias for layer in layers))


def _copy(*tensors: Tensor) -> npt.NDArray[np.float32]:
    # A copy, never the weights themselves: quantization overwrites its input.
    return np.concatenate([tensor.detach().numpy() for tensor in tensors])
