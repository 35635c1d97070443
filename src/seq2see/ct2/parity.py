"""Parity of a converted model with ours: equal log-probabilities and greedy translations."""

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2see.batches import IdPair, Ids
from seq2see.ct2.convert import transformer_of
from seq2see.ct2.engine import Engine
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import WorkError
from seq2see.tasks.translator import Translator
from seq2see.text.specials import UNKNOWN

TOLERANCE = 1e-4  # of log p, relative beyond 1; the models that we have trained differ by 5e-6
RANDOM_SENTENCES = 24
MANY = 2000  # sentences to calibrate with; repeating a few would fill batches with copies
LONGEST_SENTENCE = 40  # tokens of a random sentence
LONGEST_PAIR = 512  # tokens of a random pair


@dataclass(frozen=True)
class Parity:
    """Differences between the converted model and ours in float32."""

    tokens: int
    largest_difference: float  # of a token's log p, relative beyond 1
    translations: int  # greedy ones
    near_ties: int  # translations that differ where our two best tokens are within tolerance


def logged(log: Path) -> list[str]:
    """Sources of the last translations in a run's log, if there is one."""
    if not log.exists():
        return []
    sources: list[str] = []
    # A killed process may have left half a line, or half a character.
    for line in log.read_text(encoding="utf-8", errors="replace").split("\n"):
        if line.startswith('{"event": "validation"') and line.endswith("}"):
            sources = [source for source, *_ in json.loads(line).get("samples", [])] or sources
    return sources


def sentences(translator: Translator, texts: Sequence[str]) -> tuple[list[Ids], list[Ids]]:
    """Encode texts that fit the model, and draw random sentences, always the same ones."""
    tokenizer = translator.tokenizers.source
    limit = translator.recipe.data.max_length
    encoded = [tokenizer.encode(text) for text in texts[:MANY] if text.strip()]
    draw = random.Random("export")
    longest = min(limit, LONGEST_SENTENCE)
    lengths = [1 + longest * number // RANDOM_SENTENCES for number in range(RANDOM_SENTENCES)]
    drawn = [_random_ids(draw, len(tokenizer), length) for length in lengths]
    return [ids for ids in encoded if 0 < len(ids) <= limit], drawn


def _random_ids(draw: random.Random, size: int, length: int) -> Ids:
    return [draw.randrange(UNKNOWN, size) for _ in range(length)]


def compare(translator: Translator, engine: Engine, sources: Sequence[Ids]) -> Parity:
    """Compare log p of every token and greedy translations; fail where they differ."""
    config = Search.of(translator.recipe, beam=1)
    model = transformer_of(translator)
    decoded = search(model, sources, config, device=translator.device)
    ours = [hypotheses[0].ids for hypotheses in decoded]
    theirs = [hypotheses[0].ids for hypotheses in engine.hypotheses(sources, config)]
    pairs = [*zip(sources, ours, strict=True), *_random_pairs(translator)]
    tokens = 0
    largest = 0.0
    for one, other in zip(translator.force(pairs), engine.force(pairs), strict=True):
        tokens += len(one.tokens)
        differences = map(_difference, one.log_probabilities, other.log_probabilities)
        largest = max(largest, *differences)
    if not largest <= TOLERANCE:
        raise WorkError(
            f"the converted model is not ours: log p of a token differs by {largest:.2g}, "
            f"more than {TOLERANCE:g}; nothing was written"
        )
    near_ties = 0
    for source, our_ids, their_ids in zip(sources, ours, theirs, strict=True):
        if our_ids != their_ids:
            _check_near_tie(translator, source, our_ids, their_ids)
            near_ties += 1
    return Parity(tokens, largest, len(ours), near_ties)


def _random_pairs(translator: Translator) -> list[IdPair]:
    """Unlikely translations, up to the longest: those need every position."""
    draw = random.Random("export")
    longest = min(translator.recipe.data.max_length, LONGEST_PAIR)
    pairs = []
    for length in (0, longest // 2, longest):
        source = _random_ids(draw, len(translator.tokenizers.source), length)
        target = _random_ids(draw, len(translator.tokenizers.target), length)
        pairs.append((source, target))
    return pairs


def _difference(our_log_p: float, their_log_p: float) -> float:
    return abs(our_log_p - their_log_p) / max(1.0, abs(our_log_p))


def _check_near_tie(translator: Translator, source: Ids, our_ids: Ids, their_ids: Ids) -> None:
    """Fail unless our model finds the first tokens that differ about equally likely."""
    place = next(t for t in itertools.count() if our_ids[: t + 1] != their_ids[: t + 1])
    prefixes = [(source, our_ids[: place + 1]), (source, their_ids[: place + 1])]
    ours, theirs = translator.force(prefixes)
    our_log_p = ours.log_probabilities[place]
    their_log_p = theirs.log_probabilities[place]
    if not _difference(our_log_p, their_log_p) <= 2 * TOLERANCE:
        raise WorkError(
            f"the converted model is not ours: token {place + 1} of a greedy translation is "
            f"{theirs.tokens[place]!r} instead of {ours.tokens[place]!r}, "
            f"with log p {their_log_p:.4f} and {our_log_p:.4f}; nothing was written"
        )
