"""A trained model and its test set, as `bench reduce` runs them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from seq2see.batches import Batch, IdPair, collate
from seq2see.bench.translate import Text, own_text
from seq2see.errors import InputError
from seq2see.layers.reduction.encoder import Reducible
from seq2see.layers.trace import Trace
from seq2see.pictures import datasets as albums
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.tasks.images import load_pictures
from seq2see.tasks.text import collate_of, encode, fitting
from seq2see.tasks.translate import Translator, load, opened, recipe_of
from seq2see.text import corpora

WARM_UP_SENTENCES = 4


@dataclass(frozen=True)
class Workload:
    """A model, its test set in batches, and how to run and score it."""

    model: Reducible
    name: str
    batches: list[Batch]
    measure: str  # of quality: bleu or accuracy
    answer: Callable[[Any], Any]
    quality: Callable[[Any], float]
    encode: Callable[[Any, Batch, Trace | None], object]
    warm_up: Callable[[Any], object]  # a small part of `answer`
    decodes: bool  # whether an answer takes more than the encoder

    @property
    def count(self) -> int:
        """Number of sentences or pictures."""
        return sum(len(batch.lines) for batch in self.batches)


def workload_of(
    directory: Path,
    text: Text | None,
    data: Path | None,
    *,
    limit: int = 1000,
    batch: int = 64,
    beam: int = 1,
) -> Workload:
    """Open a model directory with the head of its recipe's test set, or of a text to translate."""
    recipe = recipe_of(directory, "translate", "classify", "images")
    if recipe.task == "translate":
        translator = load(directory, "cpu")
        text = text or own_text(
            translator, directory, lambda line: print(line, file=sys.stderr), data
        )
        return _translation(translator, directory, text, limit, batch, beam)
    if text is not None:
        raise InputError(
            "--source is for translation models; other models use the test set of their recipe"
        )
    read = _pictures if recipe.task == "images" else _labelled_texts
    model, name, pairs = read(directory, recipe, data)
    batches = [collate_of(recipe)(pairs, lines) for lines in _by_length(pairs, limit, batch)]
    return Workload(
        model,
        name,
        batches,
        "accuracy",
        answer=lambda model: [model(batch).argmax(-1) for batch in batches],
        quality=lambda guesses: _accuracy(guesses, batches),
        encode=lambda model, batch, trace: model(batch, trace),
        warm_up=lambda model: model(batches[-1]),
        decodes=False,
    )


def _pictures(
    directory: Path, recipe: Recipe, data: Path | None
) -> tuple[Any, str, Sequence[IdPair]]:
    classifier = load_pictures(directory, "cpu")
    album = albums.load(recipe.data, data)
    name = next(iter(album.tests))
    return classifier.model, name, classifier.shown(album, name)


def _labelled_texts(
    directory: Path, recipe: Recipe, data: Path | None
) -> tuple[Any, str, Sequence[IdPair]]:
    _, pair, model = opened(directory, "classify")
    test = next(iter(corpora.load(recipe.data, data).tests.values()), None)
    if test is None:
        raise InputError(f"{directory}: the data of its recipe has no test set")
    encoded = encode(recipe, pair, test)
    fits = fitting(encoded, recipe.data.max_length, test.name)
    return model, test.name, [encoded[line] for line in fits]


def _translation(
    translator: Translator, directory: Path, text: Text, limit: int, batch: int, beam: int
) -> Workload:
    """Take the sources that fit the model as a whole: longer ones would be split into pieces."""
    if not text.references:
        raise InputError(
            "--reference is missing: BLEU, the price of fewer tokens, is unknown without it"
        )
    recipe = translator.recipe
    pair = translator.tokenizers
    encoded: list[IdPair] = [(pair.source.encode(source), []) for source in text.sources]
    fits = fitting(encoded, recipe.data.max_length, text.name)[:limit]
    sources = [text.sources[line] for line in fits]
    references = [text.references[line] for line in fits]
    pairs = [encoded[line] for line in fits]
    if not isinstance(translator.model, Reducible):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that can merge or prune"
        )

    def translate(model: Any, texts: Sequence[str]) -> list[str]:
        return Translator(recipe, pair, model, translator.device).translate(texts, beam=beam)

    return Workload(
        translator.model,
        text.name,
        [collate(pairs, lines) for lines in _by_length(pairs, limit, batch)],
        "bleu",
        answer=lambda model: translate(model, sources),
        quality=lambda outputs: score(outputs, references).bleu,
        encode=lambda model, batch, trace: model.encode(batch.source, trace),
        warm_up=lambda model: translate(model, sources[:WARM_UP_SENTENCES]),
        decodes=True,
    )


def _by_length(pairs: Sequence[IdPair], limit: int, size: int) -> list[list[int]]:
    """Group the first lines into batches of similar length."""
    lines = sorted(range(min(limit, len(pairs))), key=lambda line: len(pairs[line][0]))
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def _accuracy(guesses: Sequence[Tensor], batches: Sequence[Batch]) -> float:
    right = sum(
        int((guess == batch.target_out).sum())
        for guess, batch in zip(guesses, batches, strict=True)
    )
    return 100 * right / sum(len(batch.lines) for batch in batches)
