"""Weights by name: collected from a model, and copied into one with checks."""

from pathlib import Path

from torch import Tensor, nn

from seq2see.errors import InputError

Tensors = dict[str, Tensor]

# Names that weights had in the model directories of earlier versions.
RENAMED = {"plan.thresholds": "encoder.plan.thresholds"}


def weights(model: nn.Module) -> Tensors:
    """The learned tensors by name; a tied one appears once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def copy_into(model: nn.Module, tensors: Tensors, origin: Path | str) -> None:
    """Fill the model's weights; refuse a missing, unknown or misshapen one by name."""
    own = weights(model)
    tensors = renamed(tensors)
    for name in sorted(own.keys() ^ tensors.keys()):
        problem = "no" if name in own else "unknown"
        raise InputError(f"{origin}: {problem} weight {name!r} for this recipe's model")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            shapes = f"{tuple(tensor.shape)}, and the recipe's model has {tuple(own[name].shape)}"
            raise InputError(f"{origin}: weight {name!r} has shape {shapes}")
        own[name].copy_(tensor)


def renamed(tensors: Tensors) -> Tensors:
    """Give the weights of an earlier version their present names."""
    return {RENAMED.get(name, name): tensor for name, tensor in tensors.items()}
