"""Conversions from and to torch: masks, weights there and back, and unsupported options."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.interop import (
    attention_from_torch,
    attention_to_torch,
    decoder_layer_from_torch,
    decoder_layer_to_torch,
    encoder_layer_from_torch,
    encoder_layer_to_torch,
    mask_from_torch,
)
from seq2see.layers.scores import SCORES

B, H, T, S, WIDTH, INNER = 2, 3, 5, 7, 12, 10
INF = float("inf")


def drawn(shape: tuple[int, ...], kind: str, seed: int) -> Tensor | None:
    """A mask as torch takes it: bool, 0 and −∞, or any number and −∞."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.rand(shape, generator=generator) < 0.4
    if kind == "none":
        return None
    if kind == "bool":
        return hidden
    numbers = torch.randn(shape, generator=generator) if kind == "added" else torch.zeros(shape)
    return numbers.masked_fill(hidden, -INF)


def added(mask: Tensor | None, b: int, h: int, t: int, s: int) -> float:
    """What torch's documentation says a mask adds to one score."""
    if mask is None:
        return 0.0
    place = (b, s) if mask.shape == (B, S) else (t, s) if mask.dim() == 2 else (b * H + h, t, s)
    number = mask[place]
    return (-INF if number else 0.0) if mask.dtype == torch.bool else float(number)


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["none", "bool", "hiding", "added"]),
    per_head=st.booleans(),
    padding_kind=st.sampled_from(["none", "bool", "hiding", "added"]),
    seed=st.integers(0, 999),
)
def test_masks_mean_the_opposite_at_every_place(
    kind: str, per_head: bool, padding_kind: str, seed: int
) -> None:
    attn_mask = drawn((B * H, T, S) if per_head else (T, S), kind, seed)
    padding = drawn((B, S), padding_kind, seed + 1)
    mask, bias = mask_from_torch(attn_mask, padding, heads=H)
    assert (mask is None) == (kind == padding_kind == "none")
    assert (bias is None) == ("added" not in (kind, padding_kind))
    allowed = torch.ones(()).bool() if mask is None else mask
    assert allowed.dtype == torch.bool
    places = [(b, h, t, s) for b in range(B) for h in range(H) for t in range(T) for s in range(S)]
    expected = torch.tensor([added(attn_mask, *at) + added(padding, *at) for at in places]).reshape(
        B, H, T, S
    )
    assert torch.equal(allowed.expand(B, H, T, S), expected > -INF)
    if bias is not None:
        assert bias.isfinite().all()
        torch.testing.assert_close(
            bias.expand(B, H, T, S)[expected > -INF], expected[expected > -INF]
        )


def test_a_mask_of_theirs_is_left_as_it_was() -> None:
    for kind in ("bool", "hiding", "added"):
        attn_mask, before = drawn((T, S), kind, 1), drawn((T, S), kind, 1)
        mask_from_torch(attn_mask, heads=H)
        assert attn_mask is not None and before is not None and torch.equal(attn_mask, before)


def test_numbers_that_are_learned_get_their_gradient_even_while_they_are_zero() -> None:
    attn_mask = torch.zeros(T, S, requires_grad=True)
    mask, bias = mask_from_torch(attn_mask, heads=H)
    query, key, value = (torch.randn(B, H, length, 4) for length in (T, S, S))
    attend(query, key, value, mask, bias=bias)[0].square().sum().backward()
    assert attn_mask.grad is not None and attn_mask.grad.all()


@pytest.mark.parametrize(
    ("attn_mask", "padding", "line"),
    [
        (
            torch.ones(S).bool(),
            None,
            "attn_mask has shape (7,); it must be (T, S) or (batch × heads, T, S)",
        ),
        (
            torch.ones(B, H, T, S),
            None,
            "attn_mask has shape (2, 3, 5, 7); it must be (T, S) or (batch × heads, T, S)",
        ),
        (
            torch.ones(4, T, S).bool(),
            None,
            "attn_mask has 4 rows; they must be divisible by heads (3)",
        ),
        (
            torch.ones(T, S).long(),
            None,
            "attn_mask has dtype torch.int64; it must be bool, True = hidden, or floating",
        ),
        (torch.full((T, S), INF), None, "attn_mask holds inf; it must hold finite numbers or -inf"),
        (
            None,
            torch.full((B, S), torch.nan),
            "key_padding_mask holds nan; it must hold finite numbers or -inf",
        ),
        (None, torch.ones(S).bool(), "key_padding_mask has shape (7,); it must be (batch, S)"),
        (
            None,
            torch.ones(B, S).int(),
            "key_padding_mask has dtype torch.int32; it must be bool, True = hidden, or",
        ),
        (
            torch.ones(T, S),
            torch.ones(B, S - 1),
            "attn_mask is for 7 keys and key_padding_mask for 6",
        ),
        (
            torch.ones(3 * H, T, S),
            torch.ones(B, S),
            "attn_mask is for 3 sentences and key_padding_mask for 2",
        ),
    ],
)
def test_a_mask_that_torch_would_not_take_is_refused(
    attn_mask: Any, padding: Any, line: str
) -> None:
    with pytest.raises(TypeError if "dtype" in line else ValueError) as refused:
        mask_from_torch(attn_mask, padding, heads=H)
    assert str(refused.value).startswith(line) and "\n" not in str(refused.value)


def torch_attention(**keys: Any) -> nn.MultiheadAttention:
    return shaken(nn.MultiheadAttention(WIDTH, H, **keys))


def shaken(module: Any) -> Any:
    """Biases and norms start at 0 and 1, where a forgotten or swapped one would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return module


def torch_layers(**keys: Any) -> tuple[nn.TransformerEncoderLayer, nn.TransformerDecoderLayer]:
    kinds = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    encoder, decoder = (shaken(kind(WIDTH, H, INNER, **{"dropout": 0.0, **keys})) for kind in kinds)
    return encoder, decoder


def same(left: nn.Module, right: nn.Module) -> None:
    ours, theirs = left.state_dict(), right.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]) and tensor.dtype == theirs[name].dtype, name


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": 9}, {"vdim": 8}, {"kdim": 9, "vdim": 8}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_attention_comes_back_as_it_went(
    bias: bool, widths: dict[str, int], dtype: torch.dtype
) -> None:
    theirs = torch_attention(bias=bias, dropout=0.25, **widths).to(dtype).eval()
    ours = attention_from_torch(theirs)
    assert {parameter.dtype for parameter in ours.parameters()} == {dtype}
    assert (ours.heads, ours.size, ours.dropout) == (H, WIDTH // H, 0.25)
    back = attention_to_torch(ours)
    same(back, theirs)
    assert back.batch_first and (back.dropout, back.kdim, back.vdim) == (
        0.25,
        theirs.kdim,
        theirs.vdim,
    )
    same(attention_from_torch(back), ours)


@pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_come_back_as_they_went(norm_first: bool, bias: bool) -> None:
    encoder, decoder = torch_layers(
        norm_first=norm_first, bias=bias, layer_norm_eps=0.01, dropout=0.1
    )
    for theirs, there, back in (
        (encoder, encoder_layer_from_torch, encoder_layer_to_torch),
        (decoder, decoder_layer_from_torch, decoder_layer_to_torch),
    ):
        for number, name in enumerate(("dropout", "dropout1", "dropout2"), start=2):
            getattr(theirs, name).p = number / 10
        ours = there(theirs)
        returned = back(ours)
        same(returned, theirs)
        assert (
            returned.norm_first == norm_first
            and returned.norm2.eps == 0.01
            and returned.self_attn.batch_first
        )
        assert (returned.dropout.p, returned.dropout1.p, returned.dropout2.p) == (0.2, 0.3, 0.4)
        assert returned.self_attn.dropout == 0.1
        same(there(returned), ours)


def test_an_attention_without_biases_keeps_the_layer_s_other_ones() -> None:
    attention = MultiHeadAttention(WIDTH, H, bias=False)
    ours = shaken(EncoderLayer(attention, FeedForward(WIDTH, INNER), norm="post")).eval()
    theirs = encoder_layer_to_torch(ours)
    assert theirs.self_attn.in_proj_bias is None and theirs.linear1.bias is not None
    x = torch.randn(B, T, WIDTH)
    torch.testing.assert_close(theirs(x), ours(x), rtol=0, atol=1e-5)


def conversions() -> list[tuple[Any, Any, Any]]:
    """Modules of torch with their conversions there and back."""
    encoder, decoder = torch_layers()
    return [
        (torch_attention(), attention_from_torch, attention_to_torch),
        (encoder, encoder_layer_from_torch, encoder_layer_to_torch),
        (decoder, decoder_layer_from_torch, decoder_layer_to_torch),
    ]


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_taken_along(training: bool) -> None:
    for theirs, there, back in conversions():
        ours = there(theirs.train(training))
        assert {module.training for module in ours.modules()} == {training}
        assert {module.training for module in back(ours).modules()} == {training}


def test_the_device_is_taken_along() -> None:
    """`meta` stands for a device that is not the default one."""
    encoder, decoder = torch_layers()
    converted: list[nn.Module] = [attention_from_torch(torch_attention().to("meta"))]
    converted += [
        encoder_layer_from_torch(encoder.to("meta")),
        decoder_layer_from_torch(decoder.to("meta")),
    ]
    converted.append(attention_to_torch(MultiHeadAttention(WIDTH, H).to("meta")))
    for module in converted:
        assert {parameter.device.type for parameter in module.parameters()} == {"meta"}
    for module in (*torch_layers(), torch_attention()):
        assert {parameter.device.type for parameter in module.parameters()} == {"cpu"}


def test_weights_are_copies_that_can_be_trained_and_nothing_random_is_drawn() -> None:
    for theirs, there, back in conversions():
        for parameter in theirs.parameters():
            parameter.grad = torch.ones_like(parameter)
        theirs.requires_grad_(False)
        before = torch.get_rng_state()
        ours = there(theirs)
        returned = back(ours)
        assert torch.equal(torch.get_rng_state(), before)
        addresses = [
            parameter.data_ptr()
            for module in (theirs, ours, returned)
            for parameter in module.parameters()
        ]
        assert len(set(addresses)) == len(addresses)
        for parameter in (*ours.parameters(), *returned.parameters()):
            assert parameter.requires_grad and parameter.grad is None and parameter.is_leaf


@pytest.mark.parametrize("key", ["add_bias_kv", "add_zero_attn"])
def test_options_of_torch_that_ours_lacks_are_refused_by_name(key: str) -> None:
    line = f"{key} is True; MultiHeadAttention adds no keys and values"
    with pytest.raises(ValueError, match=f"^{line}$"):
        attention_from_torch(torch_attention(**{key: True}))


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"rotary": True}, "rotary is True; torch.nn.MultiheadAttention has no rotary positions"),
        ({"inner": 6}, "inner (6) must be width (12) for torch.nn.MultiheadAttention"),
        ({"score": "dot"}, "score is dot; torch.nn.MultiheadAttention supports only scaled_dot"),
        (
            {"score": "additive"},
            "score is Additive; torch.nn.MultiheadAttention supports only scaled_dot",
        ),
    ],
)
def test_options_of_ours_that_torch_lacks_are_refused_by_name(
    keys: dict[str, Any], line: str
) -> None:
    keys = {"inner": None, **keys}
    ours = MultiHeadAttention(WIDTH, H, **keys)
    layers = (
        (attention_to_torch, ours),
        (encoder_layer_to_torch, EncoderLayer(ours, FeedForward(WIDTH, INNER))),
        (
            decoder_layer_to_torch,
            DecoderLayer(MultiHeadAttention(WIDTH, H), ours, FeedForward(WIDTH, INNER)),
        ),
    )
    for convert, module in layers:
        with pytest.raises(ValueError) as refused:
            convert(module)  # type: ignore[operator]
        assert str(refused.value) == line


def test_every_score_but_the_scaled_dot_is_refused() -> None:
    for score in set(SCORES) - {"scaled_dot"}:
        with pytest.raises(
            ValueError,
            match=r"^score is \w+; torch.nn.MultiheadAttention supports only scaled_dot$",
        ):
            attention_to_torch(MultiHeadAttention(WIDTH, H, score=score))


def named(activation: Any) -> str:
    """A test id without a memory address, which would differ between worker processes."""
    return getattr(activation, "__name__", str(activation))


@pytest.mark.parametrize("activation", ["gelu", nn.functional.silu, nn.GELU()], ids=named)
def test_an_activation_that_is_not_relu_is_refused_by_name(activation: Any) -> None:
    encoder, decoder = torch_layers(activation=activation)
    for convert, layer in (
        (encoder_layer_from_torch, encoder),
        (decoder_layer_from_torch, decoder),
    ):
        with pytest.raises(
            ValueError, match=r"^activation is (gelu|silu|GELU); FeedForward supports only relu$"
        ):
            convert(layer)  # type: ignore[arg-type]


@pytest.mark.parametrize("activation", ["relu", torch.relu, nn.ReLU()], ids=named)
def test_relu_is_known_by_each_of_its_names(activation: Any) -> None:
    encoder, decoder = torch_layers(activation=activation)
    encoder_layer_from_torch(encoder)
    decoder_layer_from_torch(decoder)


@pytest.mark.parametrize("name", ["dropout", "dropout1", "dropout3"])
def test_a_dropout_of_everything_is_refused_by_name(name: str) -> None:
    _, decoder = torch_layers()
    getattr(decoder, name).p = 1.0
    with pytest.raises(ValueError, match=rf"^{name} is 1.0; it must be less than 1$"):
        decoder_layer_from_torch(decoder)
    with pytest.raises(ValueError, match=r"^dropout is 1.0; it must be less than 1$"):
        attention_from_torch(torch_attention(dropout=1.0))
