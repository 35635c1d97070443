"""Short reprs of models in use: Translator(en→fr, 3+3 layers, 2.1M parameters, runs/mine)."""

from typing import Any


def short_repr(name: str, *facts: object) -> str:
    """A name with the facts that are known."""
    return f"{name}({', '.join(str(fact) for fact in facts if fact is not None)})"


def parameters(model: Any) -> str:
    """Number of a model's parameters, rounded: 2.1M parameters."""
    count = sum(weight.numel() for weight in model.parameters())
    if count < 1e6:
        return f"{count / 1e3:.0f}k parameters"
    return f"{count / 1e6:.1f}M parameters"
