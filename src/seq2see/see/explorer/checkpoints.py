"""A run's checkpoints: how a translation and a head have formed."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.models.build import build
from seq2see.models.unfinished import Usable, saved_in
from seq2see.models.weights import copy_into
from seq2see.see.alignment import Head
from seq2see.see.explorer.inventory import check_heads
from seq2see.see.explorer.maps import in_levels
from seq2see.see.explorer.pair import Pair, forced, log_probability, pair_of, search_of, switched
from seq2see.see.head_statistics import entropy
from seq2see.tasks.translator import Translator

MOST = 12


def checkpoints(translator: Translator) -> list[tuple[int, Path]]:
    """Number of updates and folder of each checkpoint beside a model, oldest first."""
    if translator.directory is None:
        return []
    folders = saved_in(translator.directory / "checkpoints")
    return [(int(folder.name.removeprefix("update-")), folder) for folder in folders]


def training(
    translator: Translator,
    text: str,
    head: Head,
    target: str | None = None,
    beam: int | None = None,
    off: Iterable[Head] = (),
) -> dict[str, Any]:
    """Follow a head through training, on one translation: the given, or the last checkpoint's."""
    saved = checkpoints(translator)
    if not saved:
        raise InputError("this model has no checkpoints: it is no run directory, or they are gone")
    check_heads(translator, [head])
    heads = list(off)
    search = search_of(translator, beam)
    fixed = pair_of(_opened(translator, saved[-1][1]), text, target, beam, heads)
    rows = [
        {"update": update, **_at(_opened(translator, folder), fixed, head, search, heads)}
        for update, folder in _spread(saved)
    ]
    return {"checkpoints": rows}


def _spread(saved: list[tuple[int, Path]]) -> list[tuple[int, Path]]:
    """Choose checkpoints at equal distances, the first and the last among them."""
    if len(saved) <= MOST:
        return saved
    return [saved[round(place * (len(saved) - 1) / (MOST - 1))] for place in range(MOST)]


def _opened(translator: Translator, folder: Path) -> Translator:
    """The model of a checkpoint; its moving average where there is one."""
    file = Usable(folder, folder.name).weights()
    sides = translator.tokenizers
    model = build(translator.recipe, len(sides.source), len(sides.target))
    try:
        copy_into(model, safetensors.torch.load_file(file), file)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: cannot read the weights: {error}") from None
    return Translator(translator.recipe, sides, model, translator.device)


def _at(
    opened: Translator, fixed: Pair, head: Head, search: Search, off: list[Head]
) -> dict[str, Any]:
    """Measure a head on the fixed translation, and translate anew."""
    translator = switched(opened, off)
    pair = replace(fixed, translator=translator)
    weights = forced(pair).weights[head[0]][head[1]]
    ((best,),) = translator.hypotheses([pair.source], search)
    return {
        "text": translator.tokenizers.target.decode(best.ids),
        "log_probability": log_probability(pair),
        "entropy": float(entropy(weights).mean()),
        "map": in_levels(weights),
        "rows": len(weights),
        "columns": weights.shape[1],
    }
