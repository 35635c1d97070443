"""Conversion from and to torch.nn's attention and layers, with copied weights, and from its masks.

Features that the other side lacks are refused by name. Our modules are always batch first. In
training, torch.nn returns attention weights after dropout; ours are from before it.
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
    """Convert attn_mask (T, S) or (B·H, T, S) and key_padding_mask (B, S) to `attend`'s mask, bias.

    A bool mask of torch.nn hides where it is True; a float mask is added to the scores. −∞ hides,
    so only other non-zero values need a bias.
    """
    if attn_mask is not None:
        attn_mask = _split_heads(attn_mask, heads)
    if key_padding_mask is not None:
        if key_padding_mask.dim() != 2:
            shape = tuple(key_padding_mask.shape)
            raise ValueError(f"key_padding_mask has shape {shape}; it must be (batch, S)")
        key_padding_mask = key_padding_mask[:, None, None]  # (B, 1, 1, S)
    if attn_mask is not None and key_padding_mask is not None:
        _check_pair(attn_mask, key_padding_mask)
    mask, bias = _mask_and_bias("attn_mask", attn_mask)
    padding_mask, padding_bias = _mask_and_bias("key_padding_mask", key_padding_mask)
    mask = combine(mask, padding_mask)
    if bias is not None and padding_bias is not None:
        return mask, bias + padding_bias  # (B, 1 or H, T, S)
    return mask, padding_bias if bias is None else bias


def attention_from_torch(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """Convert a torch.nn attention, keeping its weights, dtype, device and training mode."""
    for name, used in (
        ("add_bias_kv", theirs.bias_k is not None),
        ("add_zero_attn", theirs.add_zero_attn),
    ):
        if used:
            raise ValueError(f"{name} is True; MultiHeadAttention adds no keys and values")
    bias = theirs.in_proj_bias
    with torch.device("meta"):  # the weights are replaced below, so none are drawn
        ours = MultiHeadAttention(
            theirs.embed_dim,
            theirs.num_heads,
            key_width=theirs.kdim,
            value_width=theirs.vdim,
            bias=bias is not None,
            dropout=_check_dropout("dropout", theirs.dropout),
        )
    if theirs.in_proj_weight is None:  # keys or values differ in width from queries
        weights = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
    else:
        weights = [*theirs.in_proj_weight.chunk(3)]
    weights.append(theirs.out_proj.weight)
    names = ("query", "key", "value", "output")
    state = {f"{name}.weight": weight for name, weight in zip(names, weights, strict=True)}
    if bias is not None:
        biases = [*bias.chunk(3), theirs.out_proj.bias]
        state |= {f"{name}.bias": part for name, part in zip(names, biases, strict=True)}
    _fill(ours, state)
    return ours.train(theirs.training)


def attention_to_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Convert to a batch-first torch.nn attention, keeping weights, dtype, device and mode."""
    width = ours.output.out_features
    inner = ours.output.in_features
    if ours.score is not scaled_dot:
        score = getattr(ours.score, "__name__", type(ours.score).__name__)
        raise ValueError(f"score is {score}; torch.nn.MultiheadAttention supports only scaled_dot")
    if ours.rotary is not None:
        raise ValueError("rotary is True; torch.nn.MultiheadAttention has no rotary positions")
    if inner != width:
        raise ValueError(f"inner ({inner}) must be width ({width}) for torch.nn.MultiheadAttention")
    projections = (ours.query, ours.key, ours.value)
    bias = ours.query.bias is not None
    with torch.device("meta"):  # the weights are replaced below, so none are drawn
        theirs = nn.MultiheadAttention(
            width,
            ours.heads,
            dropout=ours.dropout,
            bias=bias,
            kdim=ours.key.in_features,
            vdim=ours.value.in_features,
            batch_first=True,
        )
    if theirs.in_proj_weight is None:  # keys or values differ in width from queries
        named = zip("qkv", projections, strict=True)
        state = {f"{name}_proj_weight": projection.weight for name, projection in named}
    else:
        state = {"in_proj_weight": torch.cat([projection.weight for projection in projections])}
    if bias:
        state["in_proj_bias"] = torch.cat([projection.bias for projection in projections])
    state |= {f"out_proj.{name}": part for name, part in ours.output.named_parameters()}
    _fill(theirs, state)
    return theirs.train(ours.training)


def encoder_layer_from_torch(theirs: nn.TransformerEncoderLayer) -> EncoderLayer:
    """Convert a torch.nn encoder layer, keeping its weights, the ε of its norms, its dropouts."""
    norm = "pre" if theirs.norm_first else "post"
    attention = attention_from_torch(theirs.self_attn)
    ours = EncoderLayer(attention, _feed_forward_from_torch(theirs), norm=norm)
    _residuals_from_torch(theirs, [ours.self_residual, ours.feed_forward_residual])
    return ours.train(theirs.training)


def decoder_layer_from_torch(theirs: nn.TransformerDecoderLayer) -> DecoderLayer:
    """Convert a torch.nn decoder layer, keeping its weights, the ε of its norms, its dropouts."""
    norm = "pre" if theirs.norm_first else "post"
    attention = attention_from_torch(theirs.self_attn)
    cross_attention = attention_from_torch(theirs.multihead_attn)
    ours = DecoderLayer(attention, cross_attention, _feed_forward_from_torch(theirs), norm=norm)
    residuals = [ours.self_residual, ours.cross_residual, ours.feed_forward_residual]
    _residuals_from_torch(theirs, residuals)
    return ours.train(theirs.training)


def encoder_layer_to_torch(ours: EncoderLayer) -> nn.TransformerEncoderLayer:
    """Convert to a batch-first torch.nn encoder layer with copied weights."""
    expand = ours.feed_forward.expand
    sizes = (expand.in_features, ours.self_attention.heads, expand.out_features)
    with torch.device("meta"):
        theirs = nn.TransformerEncoderLayer(*sizes, norm_first=ours.self_residual.pre)
    theirs.self_attn = attention_to_torch(ours.self_attention)
    _rest_to_torch(ours.feed_forward, [ours.self_residual, ours.feed_forward_residual], theirs)
    return theirs.train(ours.training)


def decoder_layer_to_torch(ours: DecoderLayer) -> nn.TransformerDecoderLayer:
    """Convert to a batch-first torch.nn decoder layer with copied weights."""
    expand = ours.feed_forward.expand
    sizes = (expand.in_features, ours.self_attention.heads, expand.out_features)
    with torch.device("meta"):
        theirs = nn.TransformerDecoderLayer(*sizes, norm_first=ours.self_residual.pre)
    theirs.self_attn = attention_to_torch(ours.self_attention)
    theirs.multihead_attn = attention_to_torch(ours.cross_attention)
    residuals = [ours.self_residual, ours.cross_residual, ours.feed_forward_residual]
    _rest_to_torch(ours.feed_forward, residuals, theirs)
    return theirs.train(ours.training)


def _split_heads(attn_mask: Tensor, heads: int) -> Tensor:
    """(B·H, T, S) → (B, H, T, S); (T, S) stays as it is."""
    shape = tuple(attn_mask.shape)
    if len(shape) not in (2, 3):
        raise ValueError(f"attn_mask has shape {shape}; it must be (T, S) or (batch × heads, T, S)")
    if len(shape) == 2:
        return attn_mask
    rows = len(attn_mask)
    if rows % heads:
        raise ValueError(f"attn_mask has {rows} rows; they must be divisible by heads ({heads})")
    return torch.unflatten(attn_mask, 0, (-1, heads))


def _check_pair(attn_mask: Tensor, padding: Tensor) -> None:
    keys, padding_keys = attn_mask.shape[-1], padding.shape[-1]
    if keys != padding_keys:
        raise ValueError(f"attn_mask is for {keys} keys and key_padding_mask for {padding_keys}")
    rows, padding_rows = len(attn_mask), len(padding)
    if attn_mask.dim() == 4 and rows != padding_rows:
        counts = f"{rows} sentences and key_padding_mask for {padding_rows}"
        raise ValueError(f"attn_mask is for {counts}")


def _mask_and_bias(name: str, given: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Split a torch.nn mask into our mask, True = may attend, and a bias where it adds anything."""
    if given is None:
        return None, None
    if given.dtype == torch.bool:
        return ~given, None
    if not given.is_floating_point():
        rule = "it must be bool, True = hidden, or floating, to be added"
        raise TypeError(f"{name} has dtype {given.dtype}; {rule}")
    mask = given != float("-inf")
    bias = given.masked_fill(~mask, 0.0)
    if not bias.isfinite().all():
        value = float(bias[~bias.isfinite()][0])
        raise ValueError(f"{name} holds {value}; it must hold finite numbers or -inf")
    # A learned bias of zeros will not stay zero.
    return mask, bias if bias.requires_grad or bool(bias.any()) else None


def _fill(module: nn.Module, state: dict[str, Tensor]) -> None:
    copies = {name: tensor.detach().clone() for name, tensor in state.items()}
    module.load_state_dict(copies, assign=True)


def _copy(module: Module) -> Module:
    return deepcopy(module).requires_grad_()


def _check_dropout(name: str, p: float) -> float:
    if p >= 1:
        raise ValueError(f"{name} is {p}; it must be less than 1")
    return p


def _feed_forward_from_torch(theirs: TorchLayer) -> FeedForward:
    activation = theirs.activation
    if activation not in (functional.relu, torch.relu) and not isinstance(activation, nn.ReLU):
        name = getattr(activation, "__name__", type(activation).__name__)
        raise ValueError(f"activation is {name}; FeedForward supports only relu")
    dropout = _check_dropout("dropout", theirs.dropout.p)
    with torch.device("meta"):
        ours = FeedForward(theirs.linear1.in_features, theirs.linear1.out_features, dropout)
    ours.expand = _copy(theirs.linear1)
    ours.contract = _copy(theirs.linear2)
    return ours


def _residuals_from_torch(theirs: TorchLayer, residuals: Sequence[Residual]) -> None:
    for number, residual in enumerate(residuals, start=1):  # torch.nn numbers them in order of use
        name = f"dropout{number}"
        residual.norm = _copy(getattr(theirs, f"norm{number}"))
        residual.dropout.p = _check_dropout(name, getattr(theirs, name).p)


def _rest_to_torch(
    feed_forward: FeedForward, residuals: Sequence[Residual], theirs: TorchLayer
) -> None:
    theirs.linear1 = _copy(feed_forward.expand)
    theirs.linear2 = _copy(feed_forward.contract)
    theirs.dropout.p = feed_forward.dropout
    for number, residual in enumerate(residuals, start=1):
        setattr(theirs, f"norm{number}", _copy(residual.norm))
        getattr(theirs, f"dropout{number}").p = residual.dropout.p
