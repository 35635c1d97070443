"""Translation and scoring of sentences by way of the queue."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seq2see.decoding.hypotheses import Search
from seq2see.decoding.long_text import Translation, decode, encode_pieces, join
from seq2see.scoring.likelihood import Scored
from seq2see.serve.batching import Ids
from seq2see.serve.models import Served
from seq2see.serve.patience import Patience
from seq2see.serve.problems import Problem
from seq2see.tasks.translation_engine import TranslationEngine

MANY = 10_000  # characters whose analysis is left to a thread: it takes tens of milliseconds
Result = TypeVar("Result")


@dataclass(frozen=True)
class Options:
    """Search settings of a text."""

    beam: int
    n_best: int = 1


Sentence = tuple[str, str]  # a source and the forced beginning of its translation


@dataclass(frozen=True)
class _Part:
    """A source that fits the model."""

    ids: Ids
    n_best: int
    prefix: Ids


@dataclass(frozen=True)
class _Translate:
    """Beam search as the work of a batch."""

    engine: TranslationEngine
    config: Search
    batch_tokens: int

    def tokens(self, sentence: _Part) -> int:
        return len(sentence.ids)

    def largest(self, tokens: int) -> int:
        return max(1, self.batch_tokens // ((tokens + 1) * self.config.beam))

    def run(self, batch: list[_Part]) -> list[list[Translation]]:
        sources = [sentence.ids for sentence in batch]
        n_best = max(sentence.n_best for sentence in batch)
        prefixes = [sentence.prefix for sentence in batch]
        forced = prefixes if any(prefixes) else None
        rows = self.engine.hypotheses(sources, self.config, n_best, forced)
        target = self.engine.tokenizers.target
        return [
            decode(row[: sentence.n_best], target)
            for sentence, row in zip(batch, rows, strict=True)
        ]


@dataclass(frozen=True)
class _Score:
    """Forced decoding as the work of a batch."""

    engine: TranslationEngine
    batch_tokens: int

    def tokens(self, pair: tuple[Ids, Ids]) -> int:
        return max(map(len, pair))

    def largest(self, tokens: int) -> int:
        return max(1, self.batch_tokens // (tokens + 1))

    def run(self, batch: list[tuple[Ids, Ids]]) -> list[Scored]:
        return self.engine.force(batch)


async def analyse(characters: int, analysis: Callable[[], Result]) -> Result:
    """Run an analysis of texts; one of many characters, in a thread."""
    if characters > MANY:
        return await asyncio.to_thread(analysis)
    return analysis()


async def translate_sentences(
    served: Served, sentences: Sequence[Sentence], options: Options, patience: Patience
) -> list[list[Translation]]:
    """Translate sentences; return the n best translations of each, best first.

    They begin with the prefix of their sentence, unless that is empty.
    """
    results: list[list[Translation]] = [served.cache.get(one, options) for one in sentences]
    missing = [place for place, result in enumerate(results) if result is None]
    served.count(len(sentences), len(sentences) - len(missing))
    engine = served.engine
    asked = [sentences[place] for place in missing]
    characters = sum(len(text) + len(prefix) for text, prefix in asked)
    pieces = await analyse(characters, lambda: [encode(engine, *one) for one in asked])
    work = _Translate(engine, Search.of(engine.recipe, options.beam), served.batch_tokens)
    parts = [_Part(ids, options.n_best, forced) for row in pieces for ids, forced in row]
    translated = iter(await served.batcher.run(work, parts, patience.add))
    for place, row in zip(missing, pieces, strict=True):
        results[place] = join([next(translated) for _ in row], engine.tokenizers)
        served.cache.put(sentences[place], options, results[place])
    return results


def encode(engine: TranslationEngine, text: str, prefix: str) -> list[tuple[Ids, Ids]]:
    """Encode the pieces of a sentence that fit the model; the prefix goes with the first."""
    pieces = encode_pieces(text, engine.tokenizers, engine.recipe.data.max_length)
    forced = prefix_ids(engine, prefix)
    return [(ids, [] if number else forced) for number, ids in enumerate(pieces)]


def prefix_ids(engine: TranslationEngine, prefix: str) -> Ids:
    """Encode the forced beginning of a translation; refuse one that the model cannot take."""
    ids = engine.tokenizers.target.encode(prefix) if prefix else []
    limit = engine.recipe.data.max_length
    if len(ids) >= limit:
        raise Problem(422, f"prefix has {len(ids)} tokens; fewer than {limit} are allowed")
    return ids


def encode_pairs(
    engine: TranslationEngine, sources: Sequence[str], targets: Sequence[str]
) -> list[tuple[Ids, Ids]]:
    """Encode sources and their translations."""
    return [*zip(engine.ids("source", sources), engine.ids("target", targets), strict=True)]


async def score_texts(
    served: Served, sources: Sequence[str], targets: Sequence[str], patience: Patience
) -> list[Scored]:
    """Compute the log-probability of given translations."""
    engine = served.engine
    characters = sum(map(len, [*sources, *targets]))
    pairs = await analyse(characters, lambda: encode_pairs(engine, sources, targets))
    work = _Score(engine, served.batch_tokens)
    scores: list[Scored] = await served.batcher.run(work, pairs, patience.add)
    return scores
