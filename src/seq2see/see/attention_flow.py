"""Attribution by attention: plain, weighted by the norms of what it reads, and rolled out.

Shapes: H heads, S source tokens with </s>, T target tokens with </s>, K head size, D model width.
"""

from typing import Any

import torch
from torch import Tensor

from seq2see.batches import Ids
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.transformer import Transformer
from seq2see.see.erasure import batch_of
from seq2see.see.pictures import rollout as rolled_out
from seq2see.text.specials import END


@torch.no_grad()
def last_attention(model: Any, source: Ids, target: Ids) -> Tensor:
    """Average the cross-attention of the last layer over its heads: (T, S)."""
    trace = Trace()
    model(batch_of(model, torch.tensor([[*source, END]]), target), trace)
    cross = _weights(trace, "decoder", "cross")
    if not cross:
        raise InputError("needs cross-attention, and this model has none")
    return cross[-1].mean(0)


def norm_weighted(model: Any, source: Ids, target: Ids) -> Tensor:
    """Average the norms of all layers, each row first divided by its sum: (T, S)."""
    norms = norms_by_layer(model, source, target)
    return (norms / norms.sum(-1, keepdim=True)).mean(0)


@torch.no_grad()
def norms_by_layer(model: Any, source: Ids, target: Ids) -> Tensor:
    """‖Σ_h α_h (x W_h^V + b_h^V) W_h^O‖ for each layer's cross-attention: (layers, T, S).

    The length of the vector that a target token takes from a source state x, rather than the
    weight α with which it does (Kobayashi et al., 2020, section 3).
    """
    _check_transformer(model, "the values of a Transformer's cross-attention")
    batch = batch_of(model, torch.tensor([[*source, END]]), target)
    trace = Trace()
    state = model.start(model.encode(batch.source, trace))
    model.step(state, batch.target_in, trace)
    for i, layer in enumerate(model.decoder):
        name = f"decoder.{i}.cross"
        values = state.memory[i].values[0]  # (H, S, K)
        output = layer.cross_attention.output.weight.unflatten(1, (len(values), -1))  # (D, H, K)
        moved = torch.einsum("hsk,dhk->hsd", values, output)
        taken = torch.einsum("hts,hsd->tsd", trace.weights[name][0], moved)
        trace.weights[name] = taken.norm(dim=-1)[None, None]  # (1, 1, T, S)
    return torch.cat(_weights(trace, "decoder", "cross"))


def rollout(model: Any, source: Ids, target: Ids) -> Tensor:
    """Roll attention out to the source tokens alone: rows of (T, S) that sum to one."""
    from_source = rollout_to_both(model, source, target)[:, : len(source) + 1]
    return from_source / from_source.sum(-1, keepdim=True)


@torch.no_grad()
def rollout_to_both(model: Any, source: Ids, target: Ids) -> Tensor:
    """Roll attention out through both stacks: (T, S + T), from <s> on at the target's side.

    A sublayer's output is half attention, averaged over the heads, and half its residual (Abnar
    and Zuidema, 2020); what cross-attention reads are the encoder's states, rolled out themselves.
    """
    _check_transformer(model, "the self-attention of a Transformer's encoder and decoder")
    trace = Trace()
    batch = batch_of(model, torch.tensor([[*source, END]]), target)
    model(batch, trace)
    memory = rolled_out(_weights(trace, "encoder", "self"))  # (S, S)
    sources = memory.new_zeros(len(target) + 1, len(memory))
    rolled = torch.cat([sources, torch.eye(len(sources)).to(memory)], dim=1)  # (T, S + T)
    pairs = (_weights(trace, "decoder", kind) for kind in ("self", "cross"))
    for own, cross in zip(*pairs, strict=True):
        rolled = (own.mean(0) @ rolled + rolled) / 2
        read = torch.cat([cross.mean(0) @ memory, torch.zeros_like(rolled[:, len(memory) :])], 1)
        rolled = (read + rolled) / 2
    return rolled


def _weights(trace: Trace, stack: str, kind: str) -> list[Tensor]:
    """Collect the weights (H, T, S) of one kind of attention between tokens, by layer."""
    return [
        weights[0]
        for name, weights in trace.on_tokens().items()
        if name.startswith(f"{stack}.") and name.endswith(f".{kind}")
    ]


def _check_transformer(model: Any, needed: str) -> None:
    if not isinstance(model, Transformer):
        raise InputError(f"needs {needed}, and this is no Transformer")
