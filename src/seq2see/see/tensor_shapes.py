"""Every named tensor of one pass, from ids to logits: its axes, its shape and its parameters."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Ids, collate
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.dropout import Dropout
from seq2see.layers.trace import Trace
from seq2see.models.parts import Memory
from seq2see.tasks.translator import Translator

# The last part of a module's name, in words.
PARTS = {
    "source_positions": "a vector for each source position",
    "target_positions": "a vector for each target position",
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward network",
    "query": "queries of all heads, side by side",
    "key": "keys of all heads, side by side",
    "value": "values of all heads, side by side",
    "output": "the heads' outputs, mixed",
    "weights": "attention weights of every head",
    "score": "scores of all pairs of query and key",
    "expand": "hidden layer, before its ReLU",
    "contract": "output layer",
    "norm": "normalised, with mean 0 and variance 1 before its gain and bias",
    "encoder": "the memory",
    "encoder_norm": "the encoder's output, normalised",
    "decoder_norm": "the decoder's output, normalised",
    "self_residual": "residual around the self-attention",
    "cross_residual": "residual around the cross-attention",
    "feed_forward_residual": "residual around the feed-forward network",
    "forwards": "states of the recurrence from left to right",
    "backwards": "states of the recurrence from right to left",
    "bridge": "initial states of the decoder",
    "readout": "states and contexts, combined",
    "convolution": "gated convolution",
    "window": "values and gates of the convolution",
    "context": "context, projected",
}
LOGITS = "logits: one number for each entry of the target vocabulary"
WIDTHS = dict.fromkeys(("query", "key", "value"), "feature of all heads") | {"expand": "hidden"}


@dataclass(frozen=True)
class NamedTensor:
    """One tensor of a pass; a parameter is counted where it is first used."""

    name: str  # path of the module that returns it
    what: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    parameters: int = 0  # of the module's own weights


@torch.inference_mode()
def tensor_shapes(translator: Translator, source: Ids, target: Ids) -> list[NamedTensor]:
    """Record every tensor that a module returns while a pair of ids passes, in order."""
    model: Any = translator.model.eval()
    recorder = _Recorder()
    handles = [
        module.register_forward_hook(recorder.hook(name))
        for name, module in model.named_modules()
        if name and not isinstance(module, Dropout | nn.Identity)  # these change nothing here
    ]
    try:
        batch = collate([(source, target)], [0]).to(translator.device)
        recorder.tensors.append(_ids("source", "source ids, </s> last", batch.source))
        recorder.tensors.append(_ids("target", "target ids, <s> first", batch.target_in))
        model(batch, Trace())
    finally:
        for handle in handles:
            handle.remove()
    return _counted(recorder.tensors, model)


def _counted(tensors: list[NamedTensor], model: nn.Module) -> list[NamedTensor]:
    """Count each parameter for the nearest module around it that returned a tensor."""
    returned = {tensor.name for tensor in tensors}
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        owner = name.rpartition(".")[0]
        while owner and owner not in returned:
            owner = owner.rpartition(".")[0]
        counts[owner] += parameter.numel()
    return [replace(tensor, parameters=counts.pop(tensor.name, 0)) for tensor in tensors]


class _Recorder:
    """Collects the tensors of one pass."""

    def __init__(self) -> None:
        self.tensors: list[NamedTensor] = []
        self.embedded = 0  # sides of the pair whose ids have been embedded

    def hook(self, name: str) -> Any:
        """The hook of a module of this name."""

        def record(module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(module, nn.Embedding):
                self.embedded += 1
                return self.add(name, f"a vector for each {self.side} token", output)
            weights = output[1] if isinstance(module, MultiHeadAttention) else None
            if weights is not None:
                self.add(f"{name}.weights", _in_words(f"{name}.weights"), weights)
                self.tensors[-2:] = self.tensors[-1], self.tensors[-2]  # before the output matrix
            if isinstance(output, tuple):
                output = output[0]
            if isinstance(output, Memory):
                output = output.states
            if isinstance(output, Tensor):
                self.add(name, _in_words(name), output)

        return record

    @property
    def side(self) -> str:
        """The side that passes: the source until the target's ids are embedded."""
        return "source" if self.embedded < 2 else "target"

    def add(self, name: str, what: str, tensor: Tensor) -> None:
        """Add the tensor that a module returned."""
        shape = tuple(tensor.shape)
        self.tensors.append(NamedTensor(name, what, _axes(name, shape, self.side), shape))


def _ids(side: str, what: str, ids: Tensor) -> NamedTensor:
    return NamedTensor(side, what, ("batch", f"{side} position"), tuple(ids.shape))


def _axes(name: str, shape: tuple[int, ...], side: str) -> tuple[str, ...]:
    last = name.rpartition(".")[2]
    if len(shape) == 4:
        return ("batch", "head", "query position", "key position")
    if last.endswith("_positions"):
        return (f"{side} position", "feature")
    width = "vocabulary" if name == "output" else WIDTHS.get(last, "feature")
    if len(shape) == 2:
        return ("batch", width)
    return ("batch", f"{side} position", width)


def _in_words(name: str) -> str:
    """Spell out a path: "encoder.0.self_attention.query" → "encoder layer 1, self-attention: …"."""
    if name == "output":
        return LOGITS
    *before, last = name.split(".")
    words = PARTS.get(last, last.replace("_", " "))
    if last.isdigit():
        return f"{' '.join(before)} layer {int(last) + 1}: its output"
    if not before:
        return words
    place = f"{before[0]} layer {int(before[1]) + 1}" if before[1:] else before[0]
    rest = [PARTS.get(part, part) for part in before[2:]]
    return f"{', '.join([place, *rest])}: {words}"
