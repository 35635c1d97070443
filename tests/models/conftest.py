"""Tiny translation models of every kind, for the tests of their common contract."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from seq2see.batches import Batch, IdPair, collate
from seq2see.models.build import KINDS
from seq2see.recipe.schema import ModelConfig

WIDTH, ENCODER, DECODER, HEADS, INNER, SOURCE, TARGET = 12, 3, 2, 3, 10, 17, 19
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4], [5]),
]
BLOCKS = {"heads": HEADS, "feed_forward": INNER}
LEARNED = {"positions": "learned", "max_positions": 40}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer"},
    "transformer-post": {"kind": "transformer", "norm": "post"},
    "transformer-rotary": {"kind": "transformer", "positions": "rotary"},
    "transformer-wide": {"kind": "transformer", "score": "bilinear", "attention_width": 18}
    | LEARNED,
    "rnn": {"kind": "rnn"},
    "lstm": {"kind": "lstm"},
    "gru": {"kind": "gru"},
    "rnn-last-state": {"kind": "rnn", "attend": False},
    "lstm-last-state": {"kind": "lstm", "attend": False},
    "gru-last-state": {"kind": "gru", "attend": False},
    "lstm-additive": {"kind": "lstm", "score": "additive"},
    "conv": {"kind": "conv"},
    "conv-wide": {"kind": "conv", "kernel": 4, "score": "bilinear"} | LEARNED,
    "conv-narrow": {"kind": "conv", "kernel": 1},
    "prefix": {"kind": "prefix"},
    "prefix-post": {"kind": "prefix", "norm": "post"} | LEARNED,
}


class Tiny:
    """Models of one kind, whose sizes are mutually different, so that swapped axes fail."""

    width, heads, encoder_layers, decoder_layers = WIDTH, HEADS, ENCODER, DECODER
    source_size, target_size, pairs = SOURCE, TARGET, PAIRS

    def __init__(self, name: str) -> None:
        self.name = name
        self.keys = MODELS[name]
        self.kind = self.keys["kind"]
        self.has_blocks = self.kind in ("transformer", "prefix")
        self.attends = not name.endswith("last-state")

    def config(self, **keys: Any) -> ModelConfig:
        sizes = {"width": WIDTH, "encoder_layers": ENCODER, "dropout": 0.0}
        sizes |= {} if self.kind == "prefix" else {"decoder_layers": DECODER}
        sizes |= BLOCKS if self.has_blocks else {}
        return ModelConfig.model_validate(sizes | self.keys | keys)

    def fresh(self, source_size: int, target_size: int, tie: str = "none", **keys: Any) -> Any:
        """A model as training starts it."""
        return KINDS[self.kind](self.config(**keys), source_size, target_size, tie)

    def model(self, dtype: torch.dtype = torch.float64, tie: str = "none", **keys: Any) -> Any:
        torch.manual_seed(7)
        sizes = (TARGET, TARGET) if tie == "all" else (SOURCE, TARGET)
        model = self.fresh(*sizes, tie, **keys).to(dtype).eval()
        with torch.no_grad():  # biases and norms start at 0 and 1, where errors would not show
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        return model

    def batch(self, *lines: int) -> Batch:
        """Three sentences of up to 6 source and 8 target tokens, or some of them."""
        return collate(PAIRS, lines or range(len(PAIRS)))


def _check_causal(model: nn.Module, batch: Batch) -> None:
    """Check that a target token changes its own logits and later ones, and no bit before them."""
    before = model(batch)
    for t in range(1, batch.target_in.shape[1]):
        changed = batch.target_in.clone()
        changed[:, t:] = 15
        after = model(Batch(batch.source, changed, batch.target_out, batch.lines))
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


@pytest.fixture(scope="session")
def check_causal() -> Callable[[nn.Module, Batch], None]:
    return _check_causal


@pytest.fixture(scope="session", params=MODELS)
def tiny(request: pytest.FixtureRequest) -> Tiny:
    """Each model in turn, or those that a test names by an indirect parameter."""
    return Tiny(request.param)
