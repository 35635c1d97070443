"""Encoder and decoder layers against torch's, with the same weights, pre- and post-norm."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward, Residual
from seq2see.layers.interop import decoder_layer_from_torch, encoder_layer_from_torch
from seq2see.layers.masks import causal_mask
from seq2see.layers.shapes import KeysValues
from seq2see.layers.trace import Trace

B, T, S, WIDTH, HEADS, INNER = 2, 5, 7, 12, 3, 10
norms = pytest.mark.parametrize("norm", ["pre", "post"])
REAL = torch.tensor([[True] * 4 + [False] * 3, [True] * 6 + [False]])  # (B, S)


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


def shake(module: nn.Module) -> None:
    """Biases and norms start at 0 and 1, where a forgotten or swapped one would not show."""
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)


def encoder_layers(norm: str) -> tuple[EncoderLayer, nn.TransformerEncoderLayer]:
    theirs = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, batch_first=True, norm_first=norm == "pre"
    )
    theirs = theirs.double().eval()
    shake(theirs)
    return encoder_layer_from_torch(theirs), theirs


def decoder_layers(norm: str) -> tuple[DecoderLayer, nn.TransformerDecoderLayer]:
    theirs = nn.TransformerDecoderLayer(
        WIDTH, HEADS, INNER, batch_first=True, norm_first=norm == "pre"
    )
    theirs = theirs.double().eval()
    shake(theirs)
    return decoder_layer_from_torch(theirs), theirs


def projected(layer: DecoderLayer, memory: Tensor) -> KeysValues:
    """The memory's keys and values for a decoder layer, with the mask of its padding."""
    return replace(layer.cross_attention.project(memory, memory), mask=REAL[:, None, None])


@norms
def test_encoder_layer_agrees_with_torch(norm: str) -> None:
    ours, theirs = encoder_layers(norm)
    x = torch.randn(B, S, WIDTH, dtype=torch.float64)
    expected = theirs(x, src_key_padding_mask=~REAL)
    output = ours(x, REAL[:, None, None])
    assert output.shape == (B, S, WIDTH)
    close(output[REAL], expected[REAL])


@norms
def test_decoder_layer_agrees_with_torch(norm: str) -> None:
    ours, theirs = decoder_layers(norm)
    x = torch.randn(B, T, WIDTH, dtype=torch.float64)
    memory = torch.randn(B, S, WIDTH, dtype=torch.float64)
    expected = theirs(x, memory, tgt_mask=~causal_mask(T), memory_key_padding_mask=~REAL)
    close(ours(x, projected(ours, memory), causal_mask(T)), expected)


@norms
def test_decoder_layer_with_a_cache_equals_a_single_pass(norm: str) -> None:
    ours, _ = decoder_layers(norm)
    x = torch.randn(B, T, WIDTH, dtype=torch.float64)
    memory = torch.randn(B, S, WIDTH, dtype=torch.float64)
    pair = projected(ours, memory)
    whole = ours(x, pair, causal_mask(T))
    cache = ours.self_attention.project(x[:, :0], x[:, :0])
    first = ours(x[:, :2], pair, causal_mask(2), cache=cache)
    second = ours(x[:, 2:], pair, causal_mask(T - 2, T), cache=cache)
    close(torch.cat([first, second], 1), whole)
    y = ours.self_residual.before(x)
    expected = ours.self_attention.project(y, y)
    assert cache.keys.shape == (B, HEADS, T, WIDTH // HEADS)
    close(cache.keys, expected.keys)
    close(cache.values, expected.values)


@norms
def test_encoder_layer_with_a_cache_equals_a_single_pass(norm: str) -> None:
    layer, _ = encoder_layers(norm)
    x = torch.randn(B, S, WIDTH, dtype=torch.float64)
    cache = layer.self_attention.project(x[:, :0], x[:, :0])
    first = layer(x[:, :3], causal_mask(3), cache=cache)
    second = layer(x[:, 3:], causal_mask(S - 3, S), cache=cache)
    close(torch.cat([first, second], 1), layer(x, causal_mask(S)))


@norms
def test_a_trace_changes_nothing_and_holds_the_weights_of_the_layer(norm: str) -> None:
    encoder, _ = encoder_layers(norm)
    decoder, _ = decoder_layers(norm)
    source = torch.randn(B, S, WIDTH, dtype=torch.float64)
    target = torch.randn(B, T, WIDTH, dtype=torch.float64)
    memory = projected(decoder, source)
    trace = Trace()
    real = REAL[:, None, None]
    close(encoder(source, real, trace.at("encoder")), encoder(source, real))
    traced = decoder(target, memory, causal_mask(T), trace.at("decoder"))
    close(traced, decoder(target, memory, causal_mask(T)))
    assert {name: tuple(weights.shape) for name, weights in trace.weights.items()} == {
        "encoder.self": (B, HEADS, S, S),
        "decoder.self": (B, HEADS, T, T),
        "decoder.cross": (B, HEADS, T, S),
    }
    y = decoder.self_residual.before(target)
    _, expected = decoder.self_attention(y, y, y, causal_mask(T), need_weights=True)
    close(trace.weights["decoder.self"], expected)


def test_dropout_acts_in_training_and_leaves_the_residual_path_open() -> None:
    torch.manual_seed(0)
    residual = Residual(WIDTH, dropout=0.5, norm="pre")
    x, output = torch.full((1, 200, WIDTH), 3.0), torch.ones(1, 200, WIDTH)
    values = residual.after(x, output).unique().tolist()
    assert values == [3.0, 5.0]  # the input is never dropped, the output is dropped or doubled
    residual.eval()
    assert residual.after(x, output).unique().tolist() == [4.0]


def test_feed_forward_treats_every_position_alike() -> None:
    layer = FeedForward(WIDTH, INNER).double()
    x = torch.randn(B, T, WIDTH, dtype=torch.float64)
    expected = (x @ layer.expand.weight.T + layer.expand.bias).clamp(
        min=0
    ) @ layer.contract.weight.T
    close(layer(x), expected + layer.contract.bias)
    order = [3, 0, 4, 1, 2]
    close(layer(x[:, order]), layer(x)[:, order])


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^norm is 'sandwich'; it must be 'pre' or 'post'$"):
        Residual(WIDTH, 0.0, "sandwich")
