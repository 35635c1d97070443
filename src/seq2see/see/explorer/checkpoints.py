"""A run's checkpoints: how a translation and a head have formed."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError

from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.models.build import build
from seq2see.models.unfinished import Usable, kept_in, saved_in, update_of
from seq2see.models.weights import copy_into
from seq2see.see.alignment import Head
from seq2see.see.explorer.inventory import check_heads
from seq2see.see.explorer.maps import in_levels, labels
from seq2see.see.explorer.pair import Pair, forced, log_probability, pair_of, search_of, switched
from seq2see.see.head_statistics import entropy
from seq2see.tasks.translator import Translator

MOST = 12


def checkpoints(translator: Translator) -> list[tuple[int, Path]]:
    """Number of updates and folder of each checkpoint beside a model, oldest first."""
    if translator.directory is None:
        return []
    place = translator.directory / "checkpoints"
    folders = {update_of(folder): folder for folder in (*kept_in(place), *saved_in(place))}
    return sorted(folders.items())


def training(
    translator: Translator,
    text: str,
    head: Head,
    target: str | None = None,
    beam: int | None = None,
    off: Iterable[Head] = (),
    check: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Follow a head through training, on one translation: the given, or the last checkpoint's.

    `check` is called before each checkpoint, and may raise.
    """
    saved = checkpoints(translator)
    if not saved:
        raise InputError("this model has no checkpoints: it is no run directory, or they are gone")
    check_heads(translator, [head])
    heads = list(off)
    search = search_of(translator, beam)
    fixed = pair_of(_opened(translator, *saved[-1]), text, target, beam, heads)
    rows = []
    for update, folder in _spread(saved):
        check()
        opened = _opened(translator, update, folder)
        rows.append({"update": update, **_at(opened, fixed, head, search, heads)})
    queries, keys = labels(fixed, head[0])
    tokens = {"row_tokens": queries.pieces, "column_tokens": keys.pieces}
    return {**tokens, "checkpoints": rows}


def _spread(saved: list[tuple[int, Path]]) -> list[tuple[int, Path]]:
    """Choose checkpoints at equal distances, the first and the last among them."""
    if len(saved) <= MOST:
        return saved
    return [saved[round(place * (len(saved) - 1) / (MOST - 1))] for place in range(MOST)]


def _opened(translator: Translator, update: int, folder: Path) -> Translator:
    """The model of a checkpoint; its moving average where there is one."""
    sides = translator.tokenizers
    model = build(translator.recipe, len(sides.source), len(sides.target))
    try:
        file = Usable(folder, folder.name).weights()
        copy_into(model, safetensors.torch.load_file(file), file)
    except (InputError, SafetensorError, OSError) as error:
        # Clients of a server read the message, and the error's own names a path.
        problem = "cannot be read: it is damaged, or gone by now"
        raise InputError(f"the checkpoint of update {update} {problem}") from error
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
