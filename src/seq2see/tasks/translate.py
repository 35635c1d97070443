"""Task `translate`: source sentences → target sentences."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch

from seq2see.batches import IdPair, spread
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import InputError
from seq2see.models.build import KINDS, Seq2SeqModel, build
from seq2see.models.directory import ModelDirectory
from seq2see.models.reduced import with_merging
from seq2see.scoring.bleu import Scores, score
from seq2see.scoring.errors import Analysis, analyse
from seq2see.scoring.tokenization import bleu_metric, tokenization
from seq2see.tasks.predict import predict, validated
from seq2see.tasks.protocol import Report
from seq2see.tasks.text import TextData, TextTask, device_of, distinct
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.tasks.translator import Translator
from seq2see.text.encoding import Encoder
from seq2see.text.exchange import Exchange
from seq2see.text.lines import Pair
from seq2see.text.parallel import Part
from seq2see.text.tokenizers import Tokenizers
from seq2see.training.report import Validation

SAMPLES = 10
BEAM_COST = 0.7  # × (1 + beam): time of beam search and scores in units of greedy search
SHORTEST = 1 / 3  # of the references' length; below it, the fixed costs of search prevail


class Translate(TextTask):
    """Reads the source, predicts the target."""

    command: ClassVar[str] = "seq2see translate"

    def check(self) -> None:
        super().check()
        if self.recipe.model.kind not in KINDS:
            kind = f"model.kind {self.recipe.model.kind!r}"
            raise ValueError(f"{kind} is for task 'diffusion', not for task 'translate'")
        bleu_metric(tokenization(self.recipe.data.target))  # refused before the training, not after

    def texts(self, parallel: Part) -> Iterator[Pair]:
        return iter(parallel.pairs)

    def encoder(self, tokenizers: Tokenizers) -> Encoder:
        return Encoder(tokenizers, reads="source")

    def exchange(self) -> Exchange | None:
        data = self.recipe.data
        if not data.exchange:
            return None
        return Exchange((data.source, data.target), data.exchange, self.recipe.train.seed)

    def build(self, data: TextData) -> Seq2SeqModel:
        return build(self.recipe, len(data.tokenizers.source), len(data.tokenizers.target))

    @torch.inference_mode()
    def validate(self, model: Any, data: TextData, share: float = 1.0) -> Validation:
        """Loss on the validation set, and BLEU of greedy translations of some of it."""
        device = device_of(model)
        lines, examples = data.validation
        kept = validated(len(lines), share)
        predictions = predict(model, examples, self.recipe.train, device, kept)
        loss = predictions.mean_loss
        if not math.isfinite(loss):
            return Validation(loss, {"perplexity": math.inf, "bleu": 0.0}, "", [])
        most = min(self.recipe.train.validate_sentences, len(lines))
        translated = spread(len(lines), len(validated(most, share)))
        texts = [data.corpus.val.pairs[lines[place]] for place in translated]
        started = time.perf_counter()
        outputs = self._greedy(model, data, [examples.pairs[place] for place in translated])
        seconds = time.perf_counter() - started
        tokenize = tokenization(self.recipe.data.target)
        bleu = score(outputs, [target for _, target in texts], tokenize).bleu
        shown = distinct([source for source, _ in texts], SAMPLES)
        perplexity = predictions.perplexity
        return Validation(
            loss,
            {"perplexity": perplexity, "bleu": bleu},
            f"perplexity {perplexity:.2f} · BLEU {bleu:.1f} (greedy)",
            [(*texts[place], outputs[place]) for place in shown],
            f"{len(kept):,} of {len(lines):,} sentences ({len(texts):,} of them translated)",
            len(translated) / most,  # which takes most of the time
            self._scoring_seconds(data, texts, outputs, seconds),
        )

    def _greedy(self, model: Any, data: TextData, pairs: Sequence[IdPair]) -> list[str]:
        config = replace(Search.of(self.recipe, beam=1), length_penalty=0.0)
        sources = [source for source, _ in pairs]
        hypotheses = search(model, sources, config, device=device_of(model))
        return [data.tokenizers.target.decode(best.ids) for best, *_ in hypotheses]

    def _scoring_seconds(
        self, data: TextData, texts: Sequence[Pair], outputs: Sequence[str], seconds: float
    ) -> float:
        """Expected time of the test sets, from the seconds of greedy search for some texts.

        Early outputs are too long or empty; at the end, they are about as long as the references.
        """
        references = sum(len(target) + 1 for _, target in texts)
        written = sum(len(output) + 1 for output in outputs)
        tests = data.corpus.tests.values()
        tested = sum(len(target) + 1 for test in tests for _, target in test.pairs)
        per_letter = seconds / max(written, SHORTEST * references)
        return per_letter * tested * BEAM_COST * (1 + self.recipe.decode.beam)

    def score(self, opened: TranslationEngine, data: TextData, test: str) -> Report:
        parallel = data.corpus.tests[test]
        sources = [source for source, _ in parallel.pairs]
        references = [target for _, target in parallel.pairs]
        result = evaluate(opened, sources, references)
        values = result.values() | {"corpus_sha256": parallel.digest}
        return Report(values, result.scores.report())

    def open(
        self, directory: ModelDirectory, device: torch.device, merge: int | None = None
    ) -> Translator:
        pair = directory.tokenizers
        try:
            model = build(self.recipe, len(pair.source), len(pair.target))
        except ValueError as error:
            problem = f"recipe.toml and tokenizer.json do not fit: {error}"
            raise InputError(f"{directory.path}: {problem}") from None
        directory.fill(model)
        return Translator(self.recipe, pair, merged(model, merge), device, directory.path)

    def inside(self) -> str:
        return "translation"


def merged(model: Any, merge: int | None) -> Any:
    """The model as it is, or merging tokens in each layer of its encoder."""
    try:
        return model if merge is None else with_merging(model, merge)
    except InputError as error:
        raise InputError(f"--merge {merge}: {error}") from None


@dataclass(frozen=True)
class Evaluation:
    """A translated test set with its scores and errors."""

    outputs: list[str]
    scores: Scores
    errors: Analysis

    def values(self) -> dict[str, Any]:
        """The JSON of `evaluate`, and the entry of a score card."""
        return {**asdict(self.scores), "errors": asdict(self.errors)}


def evaluate(
    translator: TranslationEngine,
    sources: Sequence[str],
    references: Sequence[str],
    beam: int | None = None,
    tokenize: str | None = None,
) -> Evaluation:
    """Translate a test set, score it and count its errors.

    `tokenize` says how BLEU counts words; by default as is usual for the target language.
    """
    # One line per sentence, as in a file: a vocabulary of words may hold line ends.
    translations = translator.translate(sources, beam=beam)
    outputs = [" ".join(text.splitlines()) for text in translations]
    pair = translator.tokenizers
    language = pair.languages[1]
    tokenize = tokenization(language) if tokenize is None else tokenize
    errors = analyse(sources, outputs, references, pair.source, language, tokenize)
    return Evaluation(outputs, score(outputs, references, tokenize), errors)
