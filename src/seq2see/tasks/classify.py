"""Task `classify`: a sentence → its label."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from seq2see.batches import IdPair, TextExamples, by_tokens
from seq2see.models.build import reduced
from seq2see.models.init import Rows
from seq2see.models.language import Classifier
from seq2see.scoring.confusion import Confusion, confusion_of
from seq2see.tasks.one_sided import Case, Labelled, LanguageModel, OneSidedTask, Sample
from seq2see.tasks.predict import Predictions
from seq2see.tasks.translate import merged
from seq2see.tasks.translation_engine import strings
from seq2see.tasks.translator import SCORED_TOKENS
from seq2see.text import labels
from seq2see.text.encoding import Encoder
from seq2see.text.lines import Pair
from seq2see.text.parallel import Part
from seq2see.text.specials import PAD, SPECIALS
from seq2see.text.tokenizers import Tokenizers


class TextClassifier(LanguageModel):
    """A model that predicts labels."""

    @torch.inference_mode()
    def classify(self, texts: Sequence[str]) -> list[Labelled]:
        vocabulary = labels.vocabulary(self.recipe.data)
        names = vocabulary.words(range(len(SPECIALS), len(vocabulary)))
        texts = strings("texts", texts)
        examples = TextExamples([(self.ids(text), [PAD]) for text in texts], shifted=False)
        results: dict[int, Labelled] = {}
        for lines in by_tokens(examples.lengths, SCORED_TOKENS, seed=0, epoch=0):
            logits = self.model(examples.batch(lines).to(self.device))[:, 0, len(SPECIALS) :]
            for line, row in zip(lines, logits.softmax(-1).tolist(), strict=True):
                probabilities = dict(zip(names, row, strict=True))
                best = max(probabilities, key=lambda name: probabilities[name])
                results[line] = Labelled(best, probabilities)
        return [results[line] for line in range(len(texts))]


class Classify(OneSidedTask):
    """Predicts the label of a sentence."""

    command: ClassVar[str] = "seq2see classify"
    counted: ClassVar[str] = "labels"
    model_type = TextClassifier
    shifted: ClassVar[bool] = False
    labelled: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        data = self.recipe.data
        if data.join > 1:
            rule = "data.labels are of single sentences"
            raise ValueError(f"data.join ({data.join}) is for other tasks: {rule}")
        if data.labels == "number" and data.corpus != "captions":
            raise ValueError("data.labels 'number' is known of data.corpus 'captions' alone")
        if data.labels == "language" and not self.recipe.one_vocabulary:
            rule = "tokenizer.joint = true and subwords"
            raise ValueError(f"data.labels 'language' needs one vocabulary: {rule}")

    def texts(self, parallel: Part) -> Iterator[Pair]:
        return labels.labelled(parallel, self.recipe.data)

    def encoder(self, tokenizers: Tokenizers) -> Encoder:
        return Encoder(tokenizers, reads="target", labels=labels.names(self.recipe.data))

    def network(self, size: int) -> nn.Module:
        classes = len(labels.vocabulary(self.recipe.data))
        return reduced(Classifier(self.recipe.model, size, classes), self.recipe)

    def figures(self, predictions: Predictions) -> dict[str, float]:
        return super().figures(predictions) | {"accuracy": predictions.accuracy}

    def summary(self, predictions: Predictions) -> str:
        return f"{super().summary(predictions)} · {predictions.accuracy:.2%} right"

    def sample(self, model: Any, tokenizers: Tokenizers, case: Case) -> Sample:
        """A sentence, its label, and the predicted one."""
        (label,) = labels.vocabulary(self.recipe.data).words(case.guess[:1])
        return *case.texts, label

    def confusion(self, pairs: Sequence[IdPair], predictions: Predictions) -> Confusion | None:
        vocabulary = labels.vocabulary(self.recipe.data)
        names = vocabulary.words(range(len(vocabulary)))
        right = [names[target[0]] for _, target in pairs]
        guessed = [names[guess[0]] for guess in predictions.guesses]
        return confusion_of(right, guessed, names)

    def inside(self) -> str:
        return "label"

    def merged(self, model: nn.Module, merge: int) -> nn.Module:
        merging: nn.Module = merged(model, merge)
        return merging

    def rows(self, vocabulary: Any) -> Rows:
        classes = (self.recipe.data.labels, vocabulary.tokenizers.languages)
        return super().rows(vocabulary) | {"output": classes}
