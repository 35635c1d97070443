"""Tasks of one language, the target: their common base, and their models in use."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from seq2see.batches import IdPair, Ids
from seq2see.decoding.sampling import Sampling
from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.recipe.schema import Recipe
from seq2see.scoring.confusion import Confusion, table
from seq2see.tasks.keys import FOR_TRANSLATION, refuse_keys
from seq2see.tasks.predict import Predictions, predict, validated
from seq2see.tasks.protocol import Report
from seq2see.tasks.short_repr import parameters, short_repr
from seq2see.tasks.text import TextData, TextTask, device_of, distinct
from seq2see.tasks.translation_engine import string
from seq2see.text.tokenizers import Tokenizers
from seq2see.training.report import Validation

SAMPLES = 3
Sample = tuple[str, str, str]  # input, right output, the model's output


@dataclass(frozen=True)
class Written:
    """A text that begins with the prompt, and log p of its continuation."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Candidate:
    """A token for a blank."""

    token: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A sentence with the likeliest token in each blank, and the candidates for each."""

    text: str
    blanks: list[list[Candidate]]


@dataclass(frozen=True)
class Labelled:
    """The likeliest label, and the probability of every label."""

    label: str
    probabilities: dict[str, float]


class Case(NamedTuple):
    """A validation example as text and as ids, and the model's best guess at each target."""

    texts: tuple[str, str]
    example: IdPair
    guess: Ids


class LanguageModel:
    """A model of one language; each task implements the methods that it is for."""

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: Tokenizers,
        model: Any,
        device: torch.device,
        command: str,
        directory: Path | None = None,
    ) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.device = device
        self.model = model.to(device).eval()
        self.command = command
        self.directory = directory

    def __repr__(self) -> str:
        task = f"task {self.recipe.task}"
        layers = f"{self.recipe.model.encoder_layers} layers"
        facts = (self.recipe.data.target, task, layers, parameters(self.model))
        return short_repr("LanguageModel", *facts, self.directory)

    def generate(
        self,
        prompt: str = "",
        count: int = 1,
        how: Sampling | None = None,
        longest: int | None = None,
    ) -> list[Written]:
        """Continue a prompt; a text has at most `longest` tokens, prompt included."""
        raise self._refusal()

    def log_probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        """Compute log p of each token of each text, </s> last."""
        raise self._refusal()

    def fill(self, text: str, top: int = 5) -> Filled:
        """Find the likeliest tokens for each <mask> of a text, independently of each other."""
        raise self._refusal()

    def classify(self, texts: Sequence[str]) -> list[Labelled]:
        """Predict the label of each text."""
        raise self._refusal()

    def _refusal(self) -> InputError:
        return InputError(f"a model of task {self.recipe.task!r} is for {self.command}")

    def ids(self, text: str) -> Ids:
        """Encode a text that the model can take."""
        ids = self.tokenizers.target.encode(string("text", text))
        limit = self.recipe.data.max_length
        if len(ids) > limit:
            rule = f"the model takes at most data.max_length = {limit}"
            raise InputError(f"{len(ids)} tokens in {text[:40]!r}…; {rule}")
        return ids


class OneSidedTask(TextTask):
    """Base of the tasks of one language."""

    counted: ClassVar[str]  # what accuracy is the share of
    model_type: ClassVar[type[LanguageModel]]
    command: ClassVar[str]

    def check(self) -> None:
        super().check()
        recipe = self.recipe
        refuse_keys(recipe, FOR_TRANSLATION, "task 'translate'")
        if recipe.model.kind != "transformer" or "decoder_layers" in recipe.model.model_fields_set:
            rule = "leave model.kind and model.decoder_layers out"
            raise ValueError(f"task {recipe.task!r} is one stack of model.encoder_layers; {rule}")
        if recipe.train.choose != "loss":
            rule = f"task {recipe.task!r} chooses by its loss"
            raise ValueError(
                f"train.choose {recipe.train.choose!r} is for task 'translate'; {rule}"
            )

    def network(self, size: int) -> nn.Module:
        """Build the network for a vocabulary of a size, with fresh weights."""
        raise NotImplementedError

    def build(self, data: TextData) -> nn.Module:
        return self.network(len(data.tokenizers.target))

    def validate(self, model: nn.Module, data: TextData, share: float = 1.0) -> Validation:
        """Loss and perplexity on the validation set, and a few examples."""
        lines, examples = data.validation
        kept = validated(len(lines), share)
        predictions = predict(model, examples, self.recipe.train, device_of(model), kept)
        samples: list[Sample] = []
        if math.isfinite(predictions.loss):
            texts = [data.validation_texts[lines[place]] for place in kept]
            for place in distinct(["\t".join(pair) for pair in texts], SAMPLES):
                example = examples.pairs[kept[place]]
                case = Case(texts[place], example, predictions.guesses[place])
                samples.append(self.sample(model, data.tokenizers, case))
        tested = sum(len(test.pairs) for test in data.corpus.tests.values())
        return Validation(
            predictions.mean_loss,
            self.figures(predictions),
            self.summary(predictions),
            samples,
            f"{len(kept):,} of {len(lines):,} sentences",
            len(kept) / len(lines),
            predictions.seconds * tested / len(kept),
        )

    def figures(self, predictions: Predictions) -> dict[str, float]:
        return {"perplexity": predictions.perplexity}

    def summary(self, predictions: Predictions) -> str:
        return f"perplexity {predictions.perplexity:.2f}"

    def sample(self, model: Any, tokenizers: Tokenizers, case: Case) -> Sample:
        """A validation example to show: the input, the right output, and the model's."""
        raise NotImplementedError

    def score(self, opened: LanguageModel, data: TextData, test: str) -> Report:
        parallel = data.corpus.tests[test]
        lines, examples = self.held_out(opened.tokenizers, parallel)
        model = opened.model.eval()
        predictions = predict(model, examples, self.recipe.train, opened.device)
        left_out = len(parallel.pairs) - len(lines)
        names = self.confusion(examples.pairs, predictions)
        return report(predictions, self.counted, parallel.digest, left_out, names)

    def confusion(self, pairs: Any, predictions: Predictions) -> Confusion | None:
        """Counts of predicted labels by right label, where there are labels."""
        return None

    def open(
        self, directory: ModelDirectory, device: torch.device, merge: int | None = None
    ) -> LanguageModel:
        pair = directory.tokenizers
        model = self.network(len(pair.target))
        directory.fill(model)
        if merge is not None:
            model = self.merged(model, merge)
        return self.model_type(self.recipe, pair, model, device, self.command, directory.path)

    def merged(self, model: nn.Module, merge: int) -> nn.Module:
        raise InputError(f"--merge {merge}: {type(model).__name__} needs every token")


def report(
    predictions: Predictions,
    counted: str,
    digest: str,
    left_out: int = 0,
    confusion: Confusion | None = None,
) -> Report:
    """Scores of a model that predicts single tokens or labels."""
    values: dict[str, Any] = {
        "perplexity": predictions.perplexity,
        "log_probability": predictions.log_probability,
        "tokens": predictions.targets,
        "accuracy": predictions.accuracy,
        "sentences": len(predictions.guesses),
        "left_out": left_out,
    }
    if confusion is not None:
        values["confusion"] = confusion
    values["corpus_sha256"] = digest
    right = f"{predictions.accuracy:.1%} of {predictions.targets:,} {counted} predicted right"
    lines = [f"perplexity {predictions.perplexity:.3f} · {right}", *table(confusion or {})]
    return Report(values, lines)
