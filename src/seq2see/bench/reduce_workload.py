"""A trained model and its test set, as `bench reduce` runs them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2see.batches import Batch, Examples, IdPair, Lengths, TextExamples, sizes_of
from seq2see.bench.translate import Text, own_text
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.reduced import reducible
from seq2see.scoring.bleu import score
from seq2see.scoring.tokenization import tokenization
from seq2see.tasks.classify import Classify
from seq2see.tasks.images import Images
from seq2see.tasks.table import open_directory, open_model, task_of
from seq2see.tasks.text import fitting
from seq2see.tasks.translator import Translator
from seq2see.text.specials import PAD

WARM_UP_SENTENCES = 4
TASKS = ("translate", "classify", "images")  # with an encoder that is pooled or attended to


@dataclass(frozen=True)
class Workload:
    """A model, its test set in batches, and how to run and score it."""

    model: Any
    name: str
    batches: list[Any]
    measure: str  # of quality: bleu or accuracy
    answer: Callable[[Any], Any]
    quality: Callable[[Any], float]
    encode: Callable[[Any, Any, Trace | None], object]
    warm_up: Callable[[Any], object]  # a small part of `answer`
    decodes: bool  # whether an answer takes more than the encoder

    @property
    def text(self) -> bool:
        """Whether the model reads text, not pictures."""
        return isinstance(self.batches[0], Batch)

    @property
    def count(self) -> int:
        """Number of sentences or pictures."""
        return sum(len(batch.lines) for batch in self.batches)

    def tokens(self, batch: Any, trace: Trace) -> Tensor:
        """Count the tokens of each sentence or picture: (B,)."""
        if self.text:
            real: Tensor = batch.source != PAD
            return real.sum(1)
        return torch.tensor([trace.reductions[0].source.shape[1]] * len(batch.lines))

    def size(self, batch: Any) -> int:
        return int((batch.source if self.text else batch.pixels).numel())


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
    opened = open_model(directory, "cpu", tasks=TASKS)
    if isinstance(opened, Translator):
        if text is None:
            text = own_text(opened, directory, lambda line: print(line, file=sys.stderr), data)
        return _translation(opened, directory, text, limit, batch, beam)
    if text is not None:
        raise InputError(
            "--source is for translation models; other models use the test set of their recipe"
        )
    name, examples = _test_examples(opened, directory, data)
    batches = [examples.batch(lines) for lines in _by_length(examples.lengths, limit, batch)]
    return Workload(
        opened.model,
        name,
        batches,
        "accuracy",
        answer=lambda model: [model(batch).argmax(-1) for batch in batches],
        quality=lambda guesses: _accuracy(guesses, batches),
        encode=lambda model, batch, trace: model(batch, trace),
        warm_up=lambda model: model(batches[-1]),
        decodes=False,
    )


def _test_examples(opened: Any, directory: Path, data: Path | None) -> tuple[str, Examples]:
    """The first test set of a classifier of pictures or of text."""
    task = task_of(opened.recipe)
    corpus = task.data(data, open_directory(directory).history)
    if not corpus.tests:
        raise InputError(f"{directory}: the data of its recipe has no test set")
    name: str = corpus.tests[0]
    if isinstance(task, Images):
        return name, task.test_examples(opened, corpus, name)
    assert isinstance(task, Classify)
    return name, task.held_out(opened.tokenizers, corpus.corpus.tests[name])[1]


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
    tokenize = tokenization(recipe.data.target)
    encoded: list[IdPair] = [(pair.source.encode(source), []) for source in text.sources]
    lines = fitting(sizes_of(encoded), recipe.data.max_length, text.name)
    fits = lines[:limit].tolist()
    sources = [text.sources[line] for line in fits]
    references = [text.references[line] for line in fits]
    examples = TextExamples([encoded[line] for line in fits])
    if not reducible(translator.model):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that can merge or prune"
        )

    def translate(model: Any, texts: Sequence[str]) -> list[str]:
        return Translator(recipe, pair, model, translator.device).translate(texts, beam=beam)

    return Workload(
        translator.model,
        text.name,
        [examples.batch(lines) for lines in _by_length(examples.lengths, limit, batch)],
        "bleu",
        answer=lambda model: translate(model, sources),
        quality=lambda outputs: score(outputs, references, tokenize).bleu,
        encode=lambda model, batch, trace: model.encode(batch.source, trace),
        warm_up=lambda model: translate(model, sources[:WARM_UP_SENTENCES]),
        decodes=True,
    )


def _by_length(lengths: Lengths, limit: int, size: int) -> list[list[int]]:
    """Group the first lines into batches of similar length."""
    lines = lengths[:limit, 0].argsort(kind="stable").tolist()
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def _accuracy(guesses: Sequence[Tensor], batches: Sequence[Any]) -> float:
    right = sum(
        int((guess == batch.targets).sum()) for guess, batch in zip(guesses, batches, strict=True)
    )
    return 100 * right / sum(len(batch.lines) for batch in batches)
