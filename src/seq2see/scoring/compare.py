"""Which of several systems translates better: sacreBLEU's paired tests, and the sentences that make the difference."""

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from seq2see.errors import InputError
from seq2see.tasks.translate import Translator, load
from seq2see.text.corpora import read_lines

Bounds = Sequence[tuple[int, float]]

SIGNIFICANT = 0.05
FEWEST = 6  # sentences: where 5 differ, all 5 fall to one side in 1 of 16 shuffles, so p < 0.05 is out of reach
EQUAL = 1e-9  # chrF closer than this differs by rounding alone
RARE_BELOW = 5  # occurrences in the training text
LENGTHS: Bounds = [(0, 0), (1, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, math.inf)]
RARE_WORDS: Bounds = [(0, 0), (1, 1), (2, 2), (3, math.inf)]
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Score:
    """A corpus score, its 95 % confidence interval mean ± ci, and how often chance alone does as much."""

    score: float
    mean: float
    ci: float
    p_bootstrap: float | None  # both None for the baseline
    p_randomisation: float | None


@dataclass(frozen=True)
class System:
    """One system; what compares it with the baseline is None for the baseline itself."""

    name: str
    bleu: Score
    chrf: Score
    wins: int | None  # sentences with a higher chrF than the baseline's
    ties: int | None
    losses: int | None
    verdict: str | None


@dataclass(frozen=True)
class Bucket:
    """BLEU of each system on the sentences of one kind."""

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
    difference: float  # the largest to the baseline's chrF, either way


@dataclass(frozen=True)
class Comparison:
    """Everything that `seq2see compare` shows."""

    systems: list[System]  # the baseline first
    signatures: dict[str, dict[str, str]]  # metric → test → sacreBLEU's signature
    sentences: int
    measured_on: str  # whose words are counted: the source's or the reference's
    rare: str  # which words are rare ones
    by_length: list[Bucket]
    by_rare_words: list[Bucket]
    most_different: list[Sentence]  # all sentences, the most different first

    def notes(self) -> list[str]:
        """What a verdict claims, and what it does not."""
        notes = [
            f"better or worse: p < {SIGNIFICANT} in both paired tests of BLEU, and {FEWEST} or more outputs differ"
        ]
        if (tries := len(self.systems) - 1) > 1:
            notes.append(
                f"each p is of one comparison alone: with {tries} of them, chance has {tries} tries"
            )
        return notes

    def charts(self) -> list[tuple[str, list[Bucket]]]:
        """What the systems are good at, each table under its title."""
        of = f"of the {self.measured_on}"
        return [
            (f"BLEU by the number of words {of}", self.by_length),
            (f"BLEU by the number of rare words {of}; rare: {self.rare}", self.by_rare_words),
        ]


@dataclass(frozen=True)
class Texts:
    """The texts of a comparison, line by line: what `compare` takes."""

    systems: dict[str, list[str]]
    references: list[str]
    sources: list[str] | None
    train: list[str] | None


def read(
    paths: Sequence[Path],
    reference: Path,
    source: Path | None = None,
    train: Path | None = None,
    *,
    beam: int | None = None,
    device: str = "auto",
) -> Texts:
    """Read files of translations and translate with model directories; mistakes are found before that begins."""
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    if not (seed.isascii() and seed.isdigit()) and seed.lower() != "none":
        raise InputError(f"SACREBLEU_SEED = {seed!r}: must be a whole number, or none")
    if len(paths) < 2:
        raise InputError(
            f"{' '.join(map(str, paths))}: one system alone; compare at least two, the baseline first"
        )
    if train is not None and source is None:
        raise InputError(f"--train {train}: tells the rare words of the source; give --source too")
    references = read_lines(reference)
    sources = None if source is None else _aligned(source, reference, len(references))
    opened: dict[str, list[str] | Translator] = {}
    for name, path in zip(_names(paths), paths, strict=True):
        if path.is_dir() and sources is None:
            raise InputError(
                f"{path}: a model directory; give --source, the text that it shall translate"
            )
        opened[name] = (
            load(path, device) if path.is_dir() else _aligned(path, reference, len(references))
        )
    rare_from = None if train is None else read_lines(train)
    systems = {
        name: each.translate(sources or [], beam=beam) if isinstance(each, Translator) else each
        for name, each in opened.items()
    }
    return Texts(systems, references, sources, rare_from)


def _aligned(path: Path, reference: Path, count: int) -> list[str]:
    lines = read_lines(path)
    if len(lines) != count:
        raise InputError(
            f"{path} has {len(lines)} lines and {reference} {count}; they must pair up"
        )
    return lines


def _names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, and as many parts before it as tell it from the others."""
    absolute = [Path(os.path.abspath(path)).parts for path in paths]
    names = []
    for path, parts in zip(paths, absolute, strict=True):
        if absolute.count(parts) > 1:
            raise InputError(f"{path}: given twice; each system stands once")
        size = 1
        while [other[-size:] for other in absolute].count(parts[-size:]) > 1:
            size += 1
        # A name need not be UTF-8, but a page is.
        names.append(str(Path(*parts[-size:])).encode(errors="backslashreplace").decode())
    return names


def compare(
    systems: Mapping[str, list[str]],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    train: Sequence[str] | None = None,
) -> Comparison:
    """Test every system against the first; `train` is source text in which common words are common."""
    if len(systems) < 2:
        raise ValueError(f"{len(systems)} system; compare at least two, the baseline first")
    if train is not None and sources is None:
        raise ValueError("train tells the rare words of sources, which are missing")
    for name, lines in [*systems.items(), *([] if sources is None else [("sources", sources)])]:
        if len(lines) != len(references) or not lines:
            raise ValueError(
                f"{name}: {len(lines)} lines and {len(references)} references; they must pair up"
            )
    tokens = [WORD.findall(text.lower()) for text in (references if sources is None else sources)]
    counts = (
        Counter(word for text in train for word in WORD.findall(text.lower()))
        if train is not None
        else None
    )
    once = Counter(word for words in tokens for word in words)
    rare = [
        sum(once[w] == 1 if counts is None else counts[w] < RARE_BELOW for w in words)
        for words in tokens
    ]
    measured_on = "reference" if sources is None else "source"
    sentences = _sentences(systems, references, sources)
    tested, signatures = _test(systems, references)
    return Comparison(
        systems=[_system(name, tested, systems, sentences) for name in systems],
        signatures=signatures,
        sentences=len(references),
        measured_on=measured_on,
        rare=f"once in the {measured_on}"
        if train is None
        else f"fewer than {RARE_BELOW} times in the training text",
        by_length=_buckets([len(words) for words in tokens], LENGTHS, systems, references),
        by_rare_words=_buckets(rare, RARE_WORDS, systems, references),
        most_different=sorted(sentences, key=lambda sentence: -sentence.difference),
    )


def _test(
    systems: Mapping[str, list[str]], references: Sequence[str]
) -> tuple[dict[str, dict[str, Score]], dict[str, dict[str, str]]]:
    """sacreBLEU's two paired tests with its defaults: metric → system → figures, and metric → test → signature."""
    found: dict[str, dict[str, list[Result]]] = {"bleu": {}, "chrf": {}}
    signatures: dict[str, dict[str, str]] = {"bleu": {}, "chrf": {}}
    for test, kind in (("bootstrap", "bs"), ("randomisation", "ar")):
        # New metrics for each test, since it writes itself into their signatures.
        metrics = {
            "bleu": BLEU(references=[list(references)], force=True),
            "chrf": CHRF(references=[list(references)]),
        }
        signed, results = PairedTest(list(systems.items()), metrics, None, test_type=kind)()
        for metric, own in zip(
            metrics, signed, strict=True
        ):  # sacreBLEU has its own names for them: chrF2
            found[metric][test] = [result for result in results[own] if isinstance(result, Result)]
            signatures[metric][test] = str(signed[own])
    tested = {
        metric: {
            name: _tested(bootstrap, randomised, tests["bootstrap"][0].score)
            for name, bootstrap, randomised in zip(
                systems, tests["bootstrap"], tests["randomisation"], strict=True
            )
        }
        for metric, tests in found.items()
    }
    return tested, signatures


def _tested(bootstrap: Result, randomised: Result, baseline: float) -> Score:
    p = [bootstrap.p_value, randomised.p_value]
    if p != [None, None] and bootstrap.score == baseline:
        # sacreBLEU counts the samples that differ by more, and would call equal systems significantly different.
        p = [1.0, 1.0]
    assert bootstrap.mean is not None and bootstrap.ci is not None
    return Score(bootstrap.score, float(bootstrap.mean), float(bootstrap.ci), *p)


def _system(
    name: str,
    tested: dict[str, dict[str, Score]],
    systems: Mapping[str, list[str]],
    sentences: Sequence[Sentence],
) -> System:
    base = next(iter(systems))
    bleu, chrf = tested["bleu"][name], tested["chrf"][name]
    if name == base:
        return System(name, bleu, chrf, None, None, None, None)
    gains = [sentence.scores[name] - sentence.scores[base] for sentence in sentences]
    wins, losses = sum(gain > EQUAL for gain in gains), sum(gain < -EQUAL for gain in gains)
    differ = sum(ours != theirs for ours, theirs in zip(systems[name], systems[base], strict=True))
    sure = all(p is not None and p < SIGNIFICANT for p in (bleu.p_bootstrap, bleu.p_randomisation))
    verdict = "no significant difference"
    if sure and differ >= FEWEST:
        verdict = "better" if bleu.score > tested["bleu"][base].score else "worse"
    return System(name, bleu, chrf, wins, len(gains) - wins - losses, losses, verdict)


def _sentences(
    systems: Mapping[str, list[str]], references: Sequence[str], sources: Sequence[str] | None
) -> list[Sentence]:
    """Each line with its outputs, scored by chrF: BLEU of a single sentence is mostly smoothing."""
    metric = CHRF()
    sentences = []
    for i, reference in enumerate(references):
        outputs = {name: lines[i] for name, lines in systems.items()}
        scores = {
            name: float(metric.sentence_score(text, [reference]).score)
            for name, text in outputs.items()
        }
        first, *others = scores.values()
        difference = max(abs(other - first) for other in others)
        source = None if sources is None else sources[i]
        sentences.append(Sentence(i + 1, source, reference, outputs, scores, difference))
    return sentences


def _buckets(
    values: Sequence[int],
    bounds: Bounds,
    systems: Mapping[str, list[str]],
    references: Sequence[str],
) -> list[Bucket]:
    metric = BLEU(force=True)
    buckets = []
    for low, high in bounds:
        lines = [i for i, value in enumerate(values) if low <= value <= high]
        if lines:
            expected = [[references[i] for i in lines]]
            name = f"{low}+" if high == math.inf else f"{low}-{high}" if low < high else str(low)
            scores = {
                s: metric.corpus_score([texts[i] for i in lines], expected).score
                for s, texts in systems.items()
            }
            buckets.append(Bucket(name, len(lines), scores))
    return buckets
