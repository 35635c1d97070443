"""Heads ranked by the harm that switching each off does to a translation."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from seq2see.batches import collate
from seq2see.decoding.hypotheses import BROKEN_MODEL
from seq2see.errors import InputError, WorkError
from seq2see.models.reduced import plan_of
from seq2see.see.alignment import Head
from seq2see.see.explorer.inventory import heads_of
from seq2see.see.explorer.pair import Pair, log_probability
from seq2see.see.explorer.switches import switchable, without_one_head_each

TOKENS = 1024  # of a pass


def ranking(pair: Pair, check: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Switch every head off in turn; the most harmful change of log p comes first.

    `check` is called before each pass, and may raise.
    """
    translator = pair.translator
    heads = [one for one in heads_of(translator) if switchable(translator.model, one[0])]
    if not heads:
        raise InputError("this model has no attention heads that could be switched off")
    before = log_probability(pair)
    rows = []
    size = _heads_per_pass(pair)
    for start in range(0, len(heads), size):
        check()
        part = heads[start : start + size]
        for (layer, head), after in zip(part, _without(pair, part), strict=True):
            rows.append((after - before, layer, head, after))
    return {
        "text": pair.translation,
        "log_probability": before,
        "heads": [
            {"layer": layer, "head": head, "log_probability": after, "change": change}
            for change, layer, head, after in sorted(rows)
        ],
    }


def _heads_per_pass(pair: Pair) -> int:
    """The number of copies of a pair in a batch."""
    model: Any = pair.translator.model
    if plan_of(model) is not None:
        return 1  # which tokens are pruned depends on the head, so rows would differ in length
    return max(1, TOKENS // (max(len(pair.source), len(pair.target)) + 1))


@torch.inference_mode()
def _without(pair: Pair, heads: Sequence[Head]) -> list[float]:
    """log p(translation | source) without each of some heads, in one pass."""
    copies = [(pair.source, pair.target)] * len(heads)
    batch = collate(copies, range(len(heads))).to(pair.translator.device)
    model = without_one_head_each(pair.translator.model, heads)
    log_p = model(batch).log_softmax(-1)  # (B, T, V)
    totals: list[float] = (
        log_p.gather(-1, batch.target_out[..., None]).double().sum((1, 2)).tolist()
    )
    if not all(map(math.isfinite, totals)):
        raise WorkError(BROKEN_MODEL)
    return totals
