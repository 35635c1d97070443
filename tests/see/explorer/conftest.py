"""A pair to explain, and the model's own logits for it."""

from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.see.explorer.pair import Pair, pair_of
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END

TEXT, TRANSLATION = "drei acht eins, sieben.", "three one eight"


@pytest.fixture
def pair(tiny: Translator) -> Pair:
    """A text with a translation that is not the model's own."""
    return pair_of(tiny, TEXT, TRANSLATION)


@pytest.fixture
def own() -> Any:
    """Compute log p (T, V) step by step, without anything that is tested."""

    @torch.inference_mode()
    def log_p(pair: Pair) -> Tensor:
        model: Any = pair.translator.model
        memory = model.encode(torch.tensor([[*pair.source, END]]))
        logits, _ = model.step(model.start(memory), torch.tensor([[BEGIN, *pair.target]]))
        return logits[0].log_softmax(-1)  # type: ignore[no-any-return]

    return log_p
