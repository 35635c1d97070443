"""Views of a model by name, from a request of the explorer to the values of its answer."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from seq2see.errors import InputError
from seq2see.see.alignment import Head
from seq2see.see.attribution import METHODS, attribute
from seq2see.see.beam_tree import grow
from seq2see.see.explorer import checkpoints, maps, stages, translation
from seq2see.see.explorer.anatomy import anatomy
from seq2see.see.explorer.by_hand import by_hand
from seq2see.see.explorer.gold import has_gold
from seq2see.see.explorer.hooks import before_passes
from seq2see.see.explorer.inventory import kinds, methods
from seq2see.see.explorer.pair import Pair, pair_of, source_ids, switched
from seq2see.see.explorer.ranking import ranking
from seq2see.see.explorer.tokens import source_tokens, target_tokens
from seq2see.serve import explore_other_views as other_views
from seq2see.serve.explore_requests import (
    AttributionLook,
    BeamLook,
    ByHandLook,
    HeadLook,
    Look,
    TranslateLook,
)
from seq2see.serve.models import TRANSLATION
from seq2see.tasks.translator import Translator

Values = dict[str, Any]
Check = Callable[[], object]  # raises when nobody waits for the view any more


def describe(opened: Any, inside: str = TRANSLATION) -> Values:
    """List everything that can be looked at in a model."""
    parameters = sum(parameter.numel() for parameter in opened.model.parameters())
    return {"parameters": parameters, **DESCRIPTIONS[inside](opened)}


def _translation(translator: Translator) -> Values:
    return {
        "maps": kinds(translator),
        "methods": methods(translator),
        "checkpoints": [update for update, _ in checkpoints.checkpoints(translator)],
        "gold": has_gold(translator.recipe),
    }


def _off(asked: Look) -> list[Head]:
    return [(one.layer, one.head) for one in asked.off]


def _pair(translator: Translator, asked: Look) -> Pair:
    return pair_of(translator, asked.text, asked.target, asked.beam, _off(asked))


def _translate(translator: Translator, asked: TranslateLook) -> Values:
    translator = switched(translator, _off(asked))
    rules = translation.rules(translator, asked.beam, asked.prefix, asked.forbidden)
    return translation.translate(translator, asked.text, rules, asked.n_best, asked.target)


def _attention(translator: Translator, asked: Look) -> Values:
    return maps.attention(_pair(translator, asked))


def _head(translator: Translator, asked: HeadLook) -> Values:
    return maps.one_head(_pair(translator, asked), asked.layer, asked.head)


def _heads(translator: Translator, asked: Look, check: Check) -> Values:
    return ranking(_pair(translator, asked), check)


def _beam(translator: Translator, asked: BeamLook) -> Values:
    translator = switched(translator, _off(asked))
    prefix, forbidden, penalty = asked.prefix, asked.forbidden, asked.length_penalty
    rules = translation.rules(translator, asked.beam, prefix, forbidden, penalty)
    return asdict(grow(translator, source_ids(translator, asked.text), rules.search, rules.prefix))


def _layers(translator: Translator, asked: Look) -> Values:
    return stages.layers(_pair(translator, asked))


def _anatomy(translator: Translator, asked: Look) -> Values:
    return anatomy(_pair(translator, asked))


def _by_hand(translator: Translator, asked: ByHandLook) -> Values:
    return by_hand(_pair(translator, asked), asked.layer, asked.head, asked.query)


def _training(translator: Translator, asked: HeadLook, check: Check) -> Values:
    head, off = (asked.layer, asked.head), _off(asked)
    return checkpoints.training(
        translator, asked.text, head, asked.target, asked.beam, off, check=check
    )


def _attribution(translator: Translator, asked: AttributionLook, check: Check) -> Values:
    if asked.method not in METHODS:
        raise InputError(f"method is not one of {', '.join(METHODS)}")
    pair = _pair(translator, asked)
    model: Any = pair.translator.model
    begun = time.perf_counter()
    with before_passes(model, check):
        values = attribute(pair.translator, pair.source, pair.target, asked.method)
    seconds = time.perf_counter() - begun
    return {
        "method": asked.method,
        "source": asdict(source_tokens(pair.translator, pair.text)),
        "target": asdict(target_tokens(pair.translator, pair.target)),
        "values": values.tolist(),
        "signed": METHODS[asked.method].signed,
        "seconds": seconds,
    }


VIEWS: dict[str, Callable[[Translator, Any], Values]] = {
    "translate": _translate,
    "attention": _attention,
    "head": _head,
    "beam": _beam,
    "layers": _layers,
    "anatomy": _anatomy,
    "by-hand": _by_hand,
}
# Views of many passes, which may take longer than anybody waits.
LONG_VIEWS: dict[str, Callable[[Translator, Any, Check], Values]] = {
    "heads": _heads,
    "training": _training,
    "attribution": _attribution,
}


DESCRIPTIONS: dict[str, Callable[[Any], Values]] = {
    TRANSLATION: _translation,
    **other_views.DESCRIPTIONS,
}


def view(
    name: str,
    opened: Any,
    asked: Any,
    check: Check = lambda: None,
    inside: str = TRANSLATION,
) -> Values:
    """Compute a view; `check` is called between the passes of a long one, and may raise."""
    check()
    if inside != TRANSLATION:
        return other_views.view(name, opened, asked, inside)
    if name in LONG_VIEWS:
        return LONG_VIEWS[name](opened, asked, check)
    if name not in VIEWS:
        raise InputError(f"{name}: a translation model has no such view; other models have it")
    return VIEWS[name](opened, asked)
