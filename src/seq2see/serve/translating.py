"""Translation and scoring of a request's texts by way of the queue."""

from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.decoding.hypotheses import Search
from seq2see.decoding.long_text import Translation, decode, encode_pieces, join
from seq2see.scoring.likelihood import Scored
from seq2see.serve.batching import Ids
from seq2see.serve.models import Served
from seq2see.serve.patience import Patience
from seq2see.serve.problems import Problem
from seq2see.tasks.translation_engine import TranslationEngine


@dataclass(frozen=True)
class Options:
    """Search settings of a text."""

    beam: int
    n_best: int = 1


@dataclass(frozen=True)
class _Sentence:
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

    def tokens(self, sentence: _Sentence) -> int:
        return len(sentence.ids)

    def largest(self, tokens: int) -> int:
        return max(1, self.batch_tokens // ((tokens + 1) * self.config.beam))

    def run(self, batch: list[_Sentence]) -> list[list[Translation]]:
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


async def translate_texts(
    served: Served,
    texts: Sequence[str],
    prefixes: Sequence[str],
    options: Options,
    patience: Patience,
) -> list[list[Translation]]:
    """Translate texts; return the n best translations of each, best first.

    They begin with the prefix of their text, unless that is empty.
    """
    keys = list(zip(texts, prefixes, strict=True))
    results: list[list[Translation]] = [served.cache.get(key, options) for key in keys]
    missing = [place for place, result in enumerate(results) if result is None]
    served.count(len(texts), len(texts) - len(missing))
    engine = served.engine
    limit = engine.recipe.data.max_length
    source = engine.tokenizers.source
    pieces = [encode_pieces(texts[place], source, limit) for place in missing]
    sentences = []
    for place, row in zip(missing, pieces, strict=True):
        forced = prefix_ids(engine, prefixes[place])
        for ids in row:
            sentences.append(_Sentence(ids, options.n_best, forced))
            forced = []
    work = _Translate(engine, Search.of(engine.recipe, options.beam), served.batch_tokens)
    translated = iter(await served.batcher.run(work, sentences, patience.add))
    for place, row in zip(missing, pieces, strict=True):
        results[place] = join([next(translated) for _ in row])
        served.cache.put(keys[place], options, results[place])
    return results


def prefix_ids(engine: TranslationEngine, prefix: str) -> Ids:
    """Encode the forced beginning of a translation; refuse one that the model cannot take."""
    ids = engine.tokenizers.target.encode(prefix) if prefix else []
    limit = engine.recipe.data.max_length
    if len(ids) >= limit:
        raise Problem(422, f"prefix has {len(ids)} tokens; fewer than {limit} are allowed")
    return ids


async def score_texts(
    served: Served, sources: Sequence[str], targets: Sequence[str], patience: Patience
) -> list[Scored]:
    """Compute the log-probability of given translations."""
    engine = served.engine
    pairs = zip(engine.ids("source", sources), engine.ids("target", targets), strict=True)
    work = _Score(engine, served.batch_tokens)
    scores: list[Scored] = await served.batcher.run(work, [*pairs], patience.add)
    return scores
