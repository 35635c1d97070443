"""Comparison of translation systems by sacreBLEU's paired tests, with their differing sentences."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from seq2see.scoring.tokenization import DEFAULT, bleu_metric

Systems = Mapping[str, list[str]]  # name → outputs; the baseline first
Bounds = Sequence[tuple[int, float]]

SIGNIFICANT = 0.05
# Where 5 outputs differ, all 5 favour one side in 1 of 16 shuffles: p < 0.05 is out of reach.
FEWEST = 6
EQUAL = 1e-9  # chrF scores closer than this differ by rounding alone
RARE_BELOW = 5  # occurrences in the training text
LENGTHS: Bounds = [(0, 0), (1, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, math.inf)]
RARE_WORDS: Bounds = [(0, 0), (1, 1), (2, 2), (3, math.inf)]
# A letter of a script without spaces is a word: Chinese characters and kana.
UNSPACED = "\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


@dataclass(frozen=True)
class Score:
    """A corpus score, its 95 % confidence interval mean ± ci, and p-values against the baseline."""

    score: float
    mean: float
    ci: float
    p_bootstrap: float | None  # both None for the baseline
    p_randomisation: float | None


@dataclass(frozen=True)
class System:
    """Scores of one system; comparisons with the baseline are None for the baseline itself."""

    name: str
    bleu: Score
    chrf: Score
    wins: int | None  # sentences with a higher chrF than the baseline's
    ties: int | None
    losses: int | None
    verdict: str | None


@dataclass(frozen=True)
class Bucket:
    """BLEU of each system on a subset of the sentences."""

    bucket: str
    sentences: int
    bleu: dict[str, float]


@dataclass(frozen=True)
class Sentence:
    """One line of the test set, with every system's output and its sentence-level chrF."""

    line: int
    source: str | None
    reference: str
    outputs: dict[str, str]
    scores: dict[str, float]
    difference: float  # largest absolute difference from the baseline's chrF


@dataclass(frozen=True)
class Comparison:
    """Results of `seq2see compare`."""

    systems: list[System]  # the baseline first
    signatures: dict[str, dict[str, str]]  # metric → test → sacreBLEU's signature
    sentences: int
    measured_on: str  # the text whose words are counted: source or reference
    rare: str  # definition of a rare word
    by_length: list[Bucket]
    by_rare_words: list[Bucket]
    most_different: list[Sentence]  # all sentences, the most different first

    def notes(self) -> list[str]:
        """State what a verdict claims, and what it does not."""
        notes = [
            f"better or worse: p < {SIGNIFICANT} in both paired tests of BLEU, "
            f"and at least {FEWEST} outputs differ"
        ]
        comparisons = len(self.systems) - 1
        if comparisons > 1:
            notes.append(
                f"each p is for a single comparison: with {comparisons} of them, "
                f"chance has {comparisons} tries"
            )
        return notes

    def charts(self) -> list[tuple[str, list[Bucket]]]:
        """Title the tables of BLEU by kind of sentence."""
        side = f"of the {self.measured_on}"
        return [
            (f"BLEU by the number of words {side}", self.by_length),
            (f"BLEU by the number of rare words {side}; rare: {self.rare}", self.by_rare_words),
        ]


def compare(
    systems: Systems,
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    train: Sequence[str] | None = None,
    tokenize: str = DEFAULT,
) -> Comparison:
    """Test every system against the first; rare words are counted in `train`, if given.

    `tokenize` says how BLEU counts words.
    """
    _check(systems, references, sources, train)
    measured_on = "reference" if sources is None else "source"
    texts = references if sources is None else sources
    tokens = [WORD.findall(text.lower()) for text in texts]
    if train is None:
        rare = f"once in the {measured_on}"
        rare_words = _below(2, tokens, tokens)
    else:
        rare = f"fewer than {RARE_BELOW} times in the training text"
        train_tokens = [WORD.findall(text.lower()) for text in train]
        rare_words = _below(RARE_BELOW, train_tokens, tokens)
    sentences = _sentences(systems, references, sources)
    tested, signatures = _test(systems, references, tokenize)
    return Comparison(
        systems=[_system(name, tested, systems, sentences) for name in systems],
        signatures=signatures,
        sentences=len(references),
        measured_on=measured_on,
        rare=rare,
        by_length=_buckets([*map(len, tokens)], LENGTHS, systems, references, tokenize),
        by_rare_words=_buckets(rare_words, RARE_WORDS, systems, references, tokenize),
        most_different=sorted(sentences, key=lambda sentence: -sentence.difference),
    )


def _check(
    systems: Systems,
    references: Sequence[str],
    sources: Sequence[str] | None,
    train: Sequence[str] | None,
) -> None:
    if len(systems) < 2:
        raise ValueError(f"{len(systems)} system; compare at least two, the baseline first")
    if train is not None and sources is None:
        raise ValueError("train counts the rare words of sources, which are missing")
    texts: list[tuple[str, Sequence[str]]] = list(systems.items())
    if sources is not None:
        texts.append(("sources", sources))
    for name, lines in texts:
        if len(lines) != len(references) or not lines:
            raise ValueError(
                f"{name}: {len(lines)} lines and {len(references)} references; they must pair up"
            )


def _below(
    bound: int, counted: Sequence[Sequence[str]], tokens: Sequence[Sequence[str]]
) -> list[int]:
    """Number of words in each line of `tokens` that occur fewer than `bound` times in `counted`."""
    counts = Counter(word for words in counted for word in words)
    return [sum(counts[word] < bound for word in words) for words in tokens]


def _test(
    systems: Systems, references: Sequence[str], tokenize: str
) -> tuple[dict[str, dict[str, Score]], dict[str, dict[str, str]]]:
    """Run sacreBLEU's two paired tests with its defaults.

    Returns metric → system → score, and metric → test → signature.
    """
    results: dict[str, dict[str, list[Result]]] = {"bleu": {}, "chrf": {}}
    signatures: dict[str, dict[str, str]] = {"bleu": {}, "chrf": {}}
    for test, kind in (("bootstrap", "bs"), ("randomisation", "ar")):
        # New metrics for each test, since a test adds itself to their signatures.
        metrics = {
            "bleu": bleu_metric(tokenize, references=[list(references)], force=True),
            "chrf": CHRF(references=[list(references)]),
        }
        signed, tested = PairedTest(list(systems.items()), metrics, None, test_type=kind)()
        # sacreBLEU returns the metrics in this order, under its own names: chrF2.
        for metric, name in zip(metrics, signed, strict=True):
            results[metric][test] = [row for row in tested[name] if isinstance(row, Result)]
            signatures[metric][test] = str(signed[name])
    scores = {metric: _scores(systems, tests) for metric, tests in results.items()}
    return scores, signatures


def _scores(systems: Systems, tests: Mapping[str, list[Result]]) -> dict[str, Score]:
    baseline = tests["bootstrap"][0].score
    rows = zip(systems, tests["bootstrap"], tests["randomisation"], strict=True)
    return {
        name: _score(bootstrap, randomisation, baseline) for name, bootstrap, randomisation in rows
    }


def _score(bootstrap: Result, randomisation: Result, baseline: float) -> Score:
    p_values = [bootstrap.p_value, randomisation.p_value]
    if p_values != [None, None] and bootstrap.score == baseline:
        # sacreBLEU counts the samples that differ by more than the systems do: where those are
        # equal, it would call them significantly different.
        p_values = [1.0, 1.0]
    assert bootstrap.mean is not None and bootstrap.ci is not None
    return Score(bootstrap.score, float(bootstrap.mean), float(bootstrap.ci), *p_values)


def _system(
    name: str,
    tested: dict[str, dict[str, Score]],
    systems: Systems,
    sentences: Sequence[Sentence],
) -> System:
    baseline = next(iter(systems))
    bleu = tested["bleu"][name]
    chrf = tested["chrf"][name]
    if name == baseline:
        return System(name, bleu, chrf, None, None, None, None)
    gains = [sentence.scores[name] - sentence.scores[baseline] for sentence in sentences]
    wins = sum(gain > EQUAL for gain in gains)
    losses = sum(gain < -EQUAL for gain in gains)
    outputs = zip(systems[name], systems[baseline], strict=True)
    differing = sum(output != other for output, other in outputs)
    p_values = (bleu.p_bootstrap, bleu.p_randomisation)
    significant = all(p is not None and p < SIGNIFICANT for p in p_values)
    verdict = "no significant difference"
    if significant and differing >= FEWEST:
        verdict = "better" if bleu.score > tested["bleu"][baseline].score else "worse"
    return System(name, bleu, chrf, wins, len(gains) - wins - losses, losses, verdict)


def _sentences(
    systems: Systems, references: Sequence[str], sources: Sequence[str] | None
) -> list[Sentence]:
    """Score each line's outputs by chrF; BLEU of a single sentence is mostly smoothing."""
    metric = CHRF()
    sentences = []
    for i, reference in enumerate(references):
        outputs = {name: lines[i] for name, lines in systems.items()}
        scores = {
            name: float(metric.sentence_score(text, [reference]).score)
            for name, text in outputs.items()
        }
        baseline, *others = scores.values()
        difference = max(abs(score - baseline) for score in others)
        source = None if sources is None else sources[i]
        sentences.append(Sentence(i + 1, source, reference, outputs, scores, difference))
    return sentences


def _buckets(
    values: Sequence[int],
    bounds: Bounds,
    systems: Systems,
    references: Sequence[str],
    tokenize: str,
) -> list[Bucket]:
    """BLEU of the lines whose values are within each of the bounds, both included."""
    metric = bleu_metric(tokenize, force=True)
    buckets = []
    for low, high in bounds:
        lines = [i for i, value in enumerate(values) if low <= value <= high]
        if not lines:
            continue
        expected = [[references[i] for i in lines]]
        scores = {
            name: metric.corpus_score([outputs[i] for i in lines], expected).score
            for name, outputs in systems.items()
        }
        buckets.append(Bucket(_bucket_name(low, high), len(lines), scores))
    return buckets


def _bucket_name(low: int, high: float) -> str:
    if high == math.inf:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"
