"""To and from torch.nn's attention and layers, with copied weights, and from its masks, which mean the opposite.

What one side has and the other has not is refused by name. Ours are batch first, whatever theirs are. In training,
the weights that theirs return have gone through dropout, and ours have not.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward, Residual
from seq2see.layers.masks import combine
from seq2see.layers.scores import scaled_dot

Module = TypeVar("Module", nn.Linear, nn.LayerNorm)
TorchLayer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer


def mask_from_torch(
    attn_mask: Tensor | None = None, key_padding_mask: Tensor | None = None, *, heads: int
) -> tuple[Tensor | None, Tensor | None]:
    """Their attn_mask (T, S) or (B·H, T, S) and key_padding_mask (B, S) → our mask and bias, as `attend` takes them.

    A bool of theirs hides where it is True, a number is added to the score: −∞ hides, and only others need a bias.
    """
    if attn_mask is not None:
        shape = tuple(attn_mask.shape)
        if len(shape) not in (2, 3):
            raise ValueError(
                f"attn_mask has shape {shape}; it must be (T, S) or (batch × heads, T, S)"
            )
        if len(shape) == 3:
            if shape[0] % heads:
                raise ValueError(
                    f"attn_mask has {shape[0]} rows; they must be divisible by heads ({heads})"
                )
            attn_mask = torch.unflatten(attn_mask, 0, (-1, heads))  # (B, H, T, S)
    if key_padding_mask is not None:
        if key_padding_mask.dim() != 2:
            raise ValueError(
                f"key_padding_mask has shape {tuple(key_padding_mask.shape)}; it must be (batch, S)"
            )
        key_padding_mask = key_padding_mask[:, None, None]  # (B, 1, 1, S)
    if attn_mask is not None and key_padding_mask is not None:
        _check_pair(attn_mask, key_padding_mask)
    mask, bias = _opened("attn_mask", attn_mask)
    padding_mask, padding_bias = _opened("key_padding_mask", key_padding_mask)
    if bias is not None and padding_bias is not None:
        return combine(mask, padding_mask), bias + padding_bias  # (B, 1 or H, T, S)
    return combine(mask, padding_mask), padding_bias if bias is None else bias


def attention_from_torch(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """Our attention with the weights of theirs, and in its type, on its device, in its mode."""
    if theirs.bias_k is not None:
        raise ValueError(
            "add_bias_kv is True; MultiHeadAttention has no keys and values but those it is given"
        )
    if theirs.add_zero_attn:
        raise ValueError(
            "add_zero_attn is True; MultiHeadAttention has no keys and values but those it is given"
        )
    bias = theirs.in_proj_bias
    with torch.device("meta"):  # draws no weights that would be replaced at once
        ours = MultiHeadAttention(
            theirs.embed_dim,
            theirs.num_heads,
            key_width=theirs.kdim,
            value_width=theirs.vdim,
            bias=bias is not None,
            dropout=_share("dropout", theirs.dropout),
        )
    if theirs.in_proj_weight is None:  # keys or values have a width of their own
        weights = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
    else:
        weights = [*theirs.in_proj_weight.chunk(3)]
    names = ("query", "key", "value", "output")
    state = {
        f"{name}.weight": part
        for name, part in zip(names, [*weights, theirs.out_proj.weight], strict=True)
    }
    if bias is not None:
        biases = [*bias.chunk(3), theirs.out_proj.bias]
        state |= {f"{name}.bias": part for name, part in zip(names, biases, strict=True)}
    _fill(ours, state)
    return ours.train(theirs.training)


def attention_to_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Their attention, batch first, with the weights of ours, and in its type, on its device, in its mode."""
    width, inner = ours.output.out_features, ours.output.in_features
    if ours.score is not scaled_dot:
        score = getattr(ours.score, "__name__", type(ours.score).__name__)
        raise ValueError(f"score is {score}; torch.nn.MultiheadAttention has scaled_dot alone")
    if ours.rotary is not None:
        raise ValueError("rotary is True; torch.nn.MultiheadAttention knows no positions")
    if inner != width:
        raise ValueError(f"inner ({inner}) must be width ({width}) for torch.nn.MultiheadAttention")
    parts, bias = (ours.query, ours.key, ours.value), ours.query.bias is not None
    with torch.device("meta"):  # draws no weights that would be replaced at once
        theirs = nn.MultiheadAttention(
            width,
            ours.heads,
            dropout=ours.dropout,
            bias=bias,
            kdim=ours.key.in_features,
            vdim=ours.value.in_features,
            batch_first=True,
        )
    if theirs.in_proj_weight is None:  # keys or values have a width of their own
        state = {
            f"{name}_proj_weight": part.weight for name, part in zip("qkv", parts, strict=True)
        }
    else:
        state = {"in_proj_weight": torch.cat([part.weight for part in parts])}
    if bias:
        state["in_proj_bias"] = torch.cat([part.bias for part in parts])
    _fill(
        theirs, state | {f"out_proj.{name}": part for name, part in ours.output.named_parameters()}
    )
    return theirs.train(ours.training)


def encoder_layer_from_torch(theirs: nn.TransformerEncoderLayer) -> EncoderLayer:
    """Our layer with the weights of theirs; its norms keep their ε, each dropout its share."""
    norm = "pre" if theirs.norm_first else "post"
    ours = EncoderLayer(
        attention_from_torch(theirs.self_attn), _feed_forward_from_torch(theirs), norm=norm
    )
    _residuals_from_torch(theirs, [ours.self_residual, ours.feed_forward_residual])
    return ours.train(theirs.training)


def decoder_layer_from_torch(theirs: nn.TransformerDecoderLayer) -> DecoderLayer:
    """Our layer with the weights of theirs; its norms keep their ε, each dropout its share."""
    attentions = attention_from_torch(theirs.self_attn), attention_from_torch(theirs.multihead_attn)
    norm = "pre" if theirs.norm_first else "post"
    ours = DecoderLayer(*attentions, _feed_forward_from_torch(theirs), norm=norm)
    _residuals_from_torch(
        theirs, [ours.self_residual, ours.cross_residual, ours.feed_forward_residual]
    )
    return ours.train(theirs.training)


def encoder_layer_to_torch(ours: EncoderLayer) -> nn.TransformerEncoderLayer:
    """Their layer, batch first, with the weights of ours."""
    width, inner = ours.feed_forward.expand.in_features, ours.feed_forward.expand.out_features
    with torch.device("meta"):
        theirs = nn.TransformerEncoderLayer(
            width, ours.self_attention.heads, inner, norm_first=ours.self_residual.pre
        )
    theirs.self_attn = attention_to_torch(ours.self_attention)
    _rest_to_torch(ours.feed_forward, [ours.self_residual, ours.feed_forward_residual], theirs)
    return theirs.train(ours.training)


def decoder_layer_to_torch(ours: DecoderLayer) -> nn.TransformerDecoderLayer:
    """Their layer, batch first, with the weights of ours."""
    width, inner = ours.feed_forward.expand.in_features, ours.feed_forward.expand.out_features
    with torch.device("meta"):
        theirs = nn.TransformerDecoderLayer(
            width, ours.self_attention.heads, inner, norm_first=ours.self_residual.pre
        )
    theirs.self_attn = attention_to_torch(ours.self_attention)
    theirs.multihead_attn = attention_to_torch(ours.cross_attention)
    residuals = [ours.self_residual, ours.cross_residual, ours.feed_forward_residual]
    _rest_to_torch(ours.feed_forward, residuals, theirs)
    return theirs.train(ours.training)


def _check_pair(attn_mask: Tensor, padding: Tensor) -> None:
    if attn_mask.shape[-1] != padding.shape[-1]:
        raise ValueError(
            f"attn_mask is for {attn_mask.shape[-1]} keys and key_padding_mask for {padding.shape[-1]}"
        )
    if attn_mask.dim() == 4 and len(attn_mask) != len(padding):
        raise ValueError(
            f"attn_mask is for {len(attn_mask)} sentences and key_padding_mask for {len(padding)}"
        )


def _opened(name: str, given: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Where a mask of theirs lets through, and what it adds there, if anything."""
    if given is None or given.dtype == torch.bool:
        return None if given is None else ~given, None
    if not given.is_floating_point():
        raise TypeError(
            f"{name} has dtype {given.dtype}; it must be bool, True = hidden, or floating, to be added"
        )
    seen = given != float("-inf")
    added = given.masked_fill(~seen, 0.0)
    if not added.isfinite().all():
        raise ValueError(
            f"{name} holds {float(added[~added.isfinite()][0])}; it must hold finite numbers or -inf"
        )
    # Zeros that are learned will not stay zeros.
    return seen, added if added.requires_grad or bool(added.any()) else None


def _fill(module: nn.Module, state: dict[str, Tensor]) -> None:
    module.load_state_dict(
        {name: part.detach().clone() for name, part in state.items()}, assign=True
    )


def _copied(module: Module) -> Module:
    return deepcopy(module).requires_grad_()


def _share(name: str, p: float) -> float:
    if p >= 1:
        raise ValueError(f"{name} is {p}; it must be less than 1")
    return p


def _feed_forward_from_torch(theirs: TorchLayer) -> FeedForward:
    activation = theirs.activation
    if activation not in (functional.relu, torch.relu) and not isinstance(activation, nn.ReLU):
        name = getattr(activation, "__name__", type(activation).__name__)
        raise ValueError(f"activation is {name}; FeedForward has relu alone")
    with torch.device("meta"):
        ours = FeedForward(
            theirs.linear1.in_features,
            theirs.linear1.out_features,
            _share("dropout", theirs.dropout.p),
        )
    ours.expand, ours.contract = _copied(theirs.linear1), _copied(theirs.linear2)
    return ours


def _residuals_from_torch(theirs: TorchLayer, residuals: Sequence[Residual]) -> None:
    for number, residual in enumerate(
        residuals, start=1
    ):  # theirs are numbered in the order of use
        residual.norm = _copied(getattr(theirs, f"norm{number}"))
        residual.dropout.p = _share(f"dropout{number}", getattr(theirs, f"dropout{number}").p)


def _rest_to_torch(
    feed_forward: FeedForward, residuals: Sequence[Residual], theirs: TorchLayer
) -> None:
    theirs.linear1, theirs.linear2 = _copied(feed_forward.expand), _copied(feed_forward.contract)
    theirs.dropout.p = feed_forward.dropout
    for number, residual in enumerate(residuals, start=1):
        setattr(theirs, f"norm{number}", _copied(residual.norm))
        getattr(theirs, f"dropout{number}").p = residual.dropout.p
