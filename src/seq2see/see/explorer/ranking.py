"""Heads ranked by the harm that switching each off does to a translation."""

from dataclasses import replace
from typing import Any

from seq2see.errors import InputError
from seq2see.see.explorer.inventory import heads_of
from seq2see.see.explorer.pair import Pair, log_probability, silenced
from seq2see.see.explorer.switches import switchable


def ranking(pair: Pair) -> dict[str, Any]:
    """Switch every head off in turn; the most harmful change of log p comes first."""
    translator = pair.translator
    heads = [one for one in heads_of(translator) if switchable(translator.model, one[0])]
    if not heads:
        raise InputError("this model has no attention heads that could be switched off")
    before = log_probability(pair)
    rows = []
    for layer, head in heads:
        after = log_probability(replace(pair, translator=silenced(translator, [(layer, head)])))
        rows.append((after - before, layer, head, after))
    return {
        "text": pair.translation,
        "log_probability": before,
        "heads": [
            {"layer": layer, "head": head, "log_probability": after, "change": change}
            for change, layer, head, after in sorted(rows)
        ],
    }
