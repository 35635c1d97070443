"""The sentence to explain, its translation, and one forced pass over both."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2see.batches import Batch, Ids, collate
from seq2see.decoding.hypotheses import BROKEN_MODEL, Search
from seq2see.errors import InputError, WorkError
from seq2see.layers.trace import Trace
from seq2see.see.alignment import Head
from seq2see.see.explorer.inventory import check_heads
from seq2see.see.explorer.switches import without_heads
from seq2see.tasks.translator import Translator

MOST_TOKENS = 200


@dataclass(frozen=True)
class Pair:
    """A source, and the translation of it that is explained."""

    translator: Translator  # some of its heads may be off
    text: str
    translation: str
    source: Ids
    target: Ids

    @property
    def batch(self) -> Batch:
        return collate([(self.source, self.target)], [0]).to(self.translator.device)


@dataclass(frozen=True)
class Forced:
    """One pass that is told the translation: predictions, and attention between tokens."""

    log_p: Tensor  # (T, V)
    weights: dict[str, Tensor]  # name → (H, T, S)
    reduced: bool  # whether the encoder merged or pruned tokens


def limit(translator: Translator) -> int:
    """The most tokens of a sentence to explain."""
    return min(translator.recipe.data.max_length, MOST_TOKENS)


def search_of(translator: Translator, beam: int | None = None) -> Search:
    """The search settings of a model, with another beam if one is given."""
    return Search.of(translator.recipe, beam or max(translator.recipe.decode.beam, 1))


def pair_of(
    translator: Translator,
    text: str,
    target: str | None = None,
    beam: int | None = None,
    off: Iterable[Head] = (),
) -> Pair:
    """Encode a text and its translation: the given one, or the model's own."""
    translator = switched(translator, off)
    source = source_ids(translator, text)
    if target is None:
        ((best,),) = translator.hypotheses([source], search_of(translator, beam))
        return paired(translator, text, best.ids)
    return paired(translator, text, translator.tokenizers.target.encode(target), target)


def paired(translator: Translator, text: str, ids: Ids, translation: str | None = None) -> Pair:
    """Pair a text with the ids of a translation; its text is decoded where it is not given."""
    ids = checked("the translation", ids, limit(translator))
    if translation is None:
        translation = translator.tokenizers.target.decode(ids)
    return Pair(translator, text, translation, source_ids(translator, text), ids)


def source_ids(translator: Translator, text: str) -> Ids:
    """Encode a text to explain; refuse one that is empty or too long."""
    if not text.strip():
        raise InputError("text: it is empty")
    return checked("the text", translator.tokenizers.source.encode(text), limit(translator))


def checked(name: str, ids: Ids, most: int) -> Ids:
    """Refuse more tokens than the explorer takes."""
    if len(ids) > most:
        raise InputError(f"{name} has {len(ids)} tokens; at most {most} can be explained")
    return ids


def switched(translator: Translator, off: Iterable[Head]) -> Translator:
    """The translator itself, or a copy of it with the same weights and some heads off."""
    heads = list(off)
    if not heads:
        return translator
    check_heads(translator, heads)
    return silenced(translator, heads)


def silenced(translator: Translator, heads: Iterable[Head]) -> Translator:
    """A copy of the translator, with the same weights, without heads that it is known to have."""
    model = without_heads(translator.model, heads)
    return Translator(translator.recipe, translator.tokenizers, model, translator.device)


@torch.inference_mode()
def forced(pair: Pair) -> Forced:
    """Pass a pair through its model."""
    trace = Trace()
    log_p = pair.translator.model(pair.batch, trace).log_softmax(-1)[0].cpu()
    if not log_p.isfinite().all():
        raise WorkError(BROKEN_MODEL)
    weights = {name: heads[0].cpu() for name, heads in trace.on_tokens().items()}
    return Forced(log_p, weights, bool(trace.reductions))


def log_probability(pair: Pair) -> float:
    """log p(translation | source), </s> included."""
    (row,) = pair.translator.log_probabilities([(pair.source, pair.target)])
    total = sum(row)
    if not math.isfinite(total):
        raise WorkError(BROKEN_MODEL)
    return total
