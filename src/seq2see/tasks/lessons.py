"""What a task gives a run: something to learn from, to choose by and to be scored on. Here it is text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from rich.markup import escape
from torch import nn

from seq2see.batches import Collate, IdPair
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.models.build import build
from seq2see.models.init import Pretrained, Taken, take_over
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.tasks import text as tasks
from seq2see.tasks.images import PictureModel
from seq2see.tasks.language import LanguageModel
from seq2see.tasks.translate import Translator, examine
from seq2see.text import corpora, tokenizers
from seq2see.text.corpora import Parallel
from seq2see.text.tokenizers import Tokenizers
from seq2see.training import checkpoint
from seq2see.training.loop import Validation

Trained = Translator | LanguageModel | PictureModel


@dataclass(frozen=True)
class Examined:
    """What a model's score card holds of a test set, and the lines for a reader."""

    values: dict[str, Any]
    lines: list[str]


@dataclass(frozen=True)
class Lesson:
    """What the training loop needs: a fresh model, the examples of an epoch and how they are batched, a validation."""

    model: nn.Module
    examples: Callable[[int], Sequence[IdPair]]
    collate: Collate
    validate: Callable[[nn.Module], Validation]
    about: str  # what there is to learn from, for a reader
    taken: tuple[Taken, Pretrained] | None = (
        None  # the weights of another model that this one begins with
    )
    unit: str = "target tokens"  # what the speed is counted in


class Lessons(Protocol):
    """The data of a recipe, read and checked."""

    parts: dict[
        str, dict[str, Any]
    ]  # what is learned from and chosen by: how much it is, and its SHA-256
    tests: list[str]

    def prepare(self, folder: Path, origin: Path | None, device: torch.device) -> Lesson:
        """Make what the loop needs, and put into the folder what a finished model will need beside its weights."""
        ...

    def examine(self, model: Trained, test: str) -> Examined:
        """Put a trained model to a test set."""
        ...


def begun_with(origin: Path | None, folder: Path, recipe: Recipe) -> Pretrained | None:
    """The model that a run begins with, if it has not begun."""
    if origin is None or checkpoint.saved_in(folder / "checkpoints"):
        return None
    return Pretrained.load(origin, recipe.task)


class TextLessons:
    """Tasks of text: a corpus, tokenizers that fit it, and perhaps another model to begin with."""

    def __init__(self, recipe: Recipe, data: Path | None) -> None:
        self.recipe, self.corpus = recipe, corpora.load(recipe.data, data)
        learned = (self.corpus.train, self.corpus.val)
        self.parts = {
            part.name: {"pairs": len(part.pairs), "sha256": part.digest} for part in learned
        }
        self.tests = list(self.corpus.tests)

    def prepare(self, folder: Path, origin: Path | None, device: torch.device) -> Lesson:
        recipe, corpus, limit = self.recipe, self.corpus, self.recipe.data.max_length
        other = begun_with(origin, folder, recipe)
        pair, where = self._tokenizers(folder, other)
        encoded = tasks.encode(recipe, pair, corpus.train)
        fits = tasks.fitting(encoded, limit, "train")
        validate = (validator if recipe.task == "translate" else tasks.validator)(
            recipe, corpus.val, pair, device
        )
        torch.manual_seed(recipe.train.seed)
        model = build(recipe, len(pair.source), len(pair.target)).to(device)
        taken = None if other is None else (take_over(model, recipe, other, pair), other)
        joined = f", each {recipe.data.join} joined," if recipe.data.join > 1 else ""
        about = (
            f"{len(fits):,} training pairs{joined} ({len(encoded) - len(fits):,} over {limit} tokens and "
            f"{corpus.train.dropped:,} empty ones left out) · {len(corpus.val.pairs):,} for validation · "
            f"vocabulary {len(pair.source):,} → {len(pair.target):,}{escape(where)}"
        )
        examples = tasks.examples(recipe, corpus.train, pair, encoded, fits)
        return Lesson(model, examples, tasks.collate_of(recipe), validate, about, taken)

    def _tokenizers(self, folder: Path, other: Pretrained | None) -> tuple[Tokenizers, str]:
        """The vocabulary, and where it comes from if it is not new."""
        recipe, data = self.recipe, self.recipe.data
        if checkpoint.saved_in(
            folder / "checkpoints"
        ):  # its own, even if today's library would make another
            return tokenizers.load(folder), " (from the cache)"
        if other is not None:
            pair = other.tokenizers_for(recipe)
            tokenizers.save(pair, folder, recipe.tokenizer, pair.fingerprint)
            return pair, f" (from {other.directory})"
        pairs = self.corpus.train.pairs
        pair, cached = tokenizers.cached(recipe.tokenizer, data.source, data.target, pairs, folder)
        return pair, " (from the cache)" if cached else ""

    def examine(self, model: Trained, test: str) -> Examined:
        parallel = self.corpus.tests[test]
        if isinstance(model, LanguageModel):
            looked = tasks.examine(
                model.recipe, model.model, model.tokenizers, parallel, model.device
            )
            values, lines = looked.values(), looked.lines()
        else:
            assert isinstance(model, Translator)
            sources, references = (
                [source for source, _ in parallel.pairs],
                [target for _, target in parallel.pairs],
            )
            found = examine(model, sources, references)
            values, lines = found.values(), found.scores.report()
        return Examined(values | {"corpus_sha256": parallel.digest}, lines)


def validator(
    recipe: Recipe, parallel: Parallel, pair: Tokenizers, device: torch.device
) -> Callable[[nn.Module], Validation]:
    """How a translation model is looked at: as the others, and by BLEU of greedy translations of the head of val."""
    encoded = tasks.encode(recipe, pair, parallel)
    # As in training: one endless line would cost every validation minutes.
    lines = tasks.fitting(encoded, recipe.data.max_length, "val")
    encoded = [encoded[line] for line in lines]
    shown = [parallel.pairs[line] for line in lines[: recipe.train.validate_sentences]]
    how = replace(Search.of(recipe, beam=1), length_penalty=0.0)

    @torch.inference_mode()
    def validate(model: nn.Module) -> Validation:
        seen = tasks.look(recipe, model, encoded, device)
        if not math.isfinite(seen.loss):
            return Validation(
                seen.loss / seen.tokens, math.inf, 0.0, []
            )  # such a model translates nothing
        sources = [source for source, _ in encoded[: len(shown)]]
        found = search(model, sources, how, device=device)  # type: ignore[arg-type]
        outputs = [pair.target.decode(hypotheses[0].ids) for hypotheses in found]
        bleu = score(outputs, [target for _, target in shown]).bleu
        samples = [(s, t, o) for (s, t), o in zip(shown, outputs, strict=True)][:10]
        return Validation(seen.loss / seen.tokens, seen.perplexity, bleu, samples)

    return validate
