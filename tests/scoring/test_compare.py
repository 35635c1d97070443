"""Comparisons report sacreBLEU's own figures and claim nothing beyond them."""

import json
import os
import random
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seq2see.scoring.compare import Comparison, compare

WORDS = [
    "the",
    "a",
    "small",
    "green",
    "old",
    "dog",
    "cat",
    "man",
    "sees",
    "likes",
    "house",
    "tree",
    "under",
    "and",
]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < share else word for word in line.split())
        for line in lines
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


DRAW = random.Random(3)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(3, 34))) + "." for _ in range(36)]
BASE = noisy(REFERENCES, 0.5, 1)
SYSTEMS = {
    "base": BASE,
    "like": noisy(REFERENCES, 0.5, 2),
    "good": noisy(REFERENCES, 0.2, 3),
    "copy": list(BASE),
    "five": [*REFERENCES[:5], *BASE[5:]],
    "bad": noisy(REFERENCES, 0.8, 4),
}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(SYSTEMS, REFERENCES)  # once: sacreBLEU takes a second per system


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    texts = SYSTEMS | {"reference": REFERENCES}
    return {name: write(folder / f"{name}.txt", lines) for name, lines in texts.items()}


def sacrebleu(files: dict[str, Path], systems: list[str], *arguments: str) -> str:
    """Output of sacreBLEU's own command for the systems."""
    paths = [str(files[name]) for name in ("reference", *systems)]
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        paths[0],
        "-i",
        *paths[1:],
        "-q",
        "-nc",
        *arguments,
    ]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SACREBLEU")
    }
    return subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", env=environment
    ).stdout


@pytest.mark.parametrize(
    ("option", "test"), [("--paired-bs", "bootstrap"), ("--paired-ar", "randomisation")]
)
def test_figures_are_those_of_sacrebleus_command(
    comparison: Comparison, files: dict[str, Path], option: str, test: str
) -> None:
    base, like, good = comparison.systems[:3]
    rows = json.loads(
        sacrebleu(files, ["base", "like", "good"], option, "-m", "bleu", "-f", "json")
    )
    for row, system in zip(rows, (base, like, good), strict=True):
        assert system.bleu.score == row["BLEU"]["score"]
        assert getattr(system.bleu, f"p_{test}") == row["BLEU"]["p_value"]
        if test == "bootstrap":
            assert (system.bleu.mean, system.bleu.ci) == (row["BLEU"]["mean"], row["BLEU"]["ci"])
    # sacreBLEU 2.6 cannot write chrF's intervals as JSON, so its table has to do.
    text = sacrebleu(files, ["base", "like"], option, "-m", "bleu", "chrf", "-f", "text", "-w", "4")
    assert f" - BLEU       {comparison.signatures['bleu'][test]}\n" in text
    assert f" - chrF2      {comparison.signatures['chrf'][test]}\n" in text
    for score in (base.chrf, like.chrf):
        interval = f" ({score.mean:.4f} ± {score.ci:.4f})" if test == "bootstrap" else ""
        assert f" {score.score:.4f}{interval} " in text
    p = [getattr(score, f"p_{test}") for score in (like.bleu, like.chrf)]
    assert re.findall(r"\(p = ([\d.]+)\)", text) == [f"{value:.4f}" for value in p]


def test_the_signatures_name_both_tests(comparison: Comparison) -> None:
    assert "|bs:1000|seed:12345|" in comparison.signatures["bleu"]["bootstrap"]
    assert "|ar:10000|seed:12345|" in comparison.signatures["bleu"]["randomisation"]
    assert "|ar:" not in comparison.signatures["chrf"]["bootstrap"]


def test_verdicts(comparison: Comparison) -> None:
    base, like, good, _, _, bad = comparison.systems
    assert (like.verdict, good.verdict, bad.verdict) == (
        "no significant difference",
        "better",
        "worse",
    )
    assert good.bleu.score > base.bleu.score > bad.bleu.score
    assert base.wins is base.ties is base.losses is None and base.verdict is None
    assert base.bleu.p_bootstrap is base.bleu.p_randomisation is base.chrf.p_bootstrap is None
    assert comparison.notes()[1:] == [
        "each p is for a single comparison: with 5 of them, chance has 5 tries"
    ]


def test_equal_systems_do_not_differ(comparison: Comparison) -> None:
    base, copy = comparison.systems[0], comparison.systems[3]
    assert copy.verdict == "no significant difference"
    assert (copy.wins, copy.ties, copy.losses) == (0, 36, 0)
    for ours, theirs in ((copy.bleu, base.bleu), (copy.chrf, base.chrf)):
        assert (ours.score, ours.p_bootstrap, ours.p_randomisation) == (theirs.score, 1.0, 1.0)


def test_five_sentences_prove_nothing(comparison: Comparison) -> None:
    five = comparison.systems[4]
    assert five.bleu.p_randomisation is not None and five.bleu.p_randomisation < 0.05
    assert five.bleu.p_bootstrap is not None and five.bleu.p_bootstrap < 0.05
    assert (five.wins, five.ties, five.losses) == (5, 31, 0)
    assert five.verdict == "no significant difference"


def test_sentences_are_won_by_sentence_chrf(comparison: Comparison) -> None:
    metric = CHRF()
    scores = {
        name: [
            metric.sentence_score(*pair).score
            for pair in zip(lines, ([r] for r in REFERENCES), strict=True)
        ]
        for name, lines in SYSTEMS.items()
    }
    for sentence in comparison.most_different:
        i = sentence.line - 1
        assert (
            sentence.scores == {name: scores[name][i] for name in SYSTEMS}
            and sentence.source is None
        )
        assert sentence.outputs == {name: SYSTEMS[name][i] for name in SYSTEMS}
        assert sentence.difference == max(
            abs(scores[name][i] - scores["base"][i]) for name in SYSTEMS
        )
    for system in comparison.systems[1:]:
        pairs = list(zip(scores[system.name], scores["base"], strict=True))
        assert system.wins == sum(ours > theirs for ours, theirs in pairs)
        assert system.losses == sum(ours < theirs for ours, theirs in pairs)
        assert sum(n for n in (system.wins, system.ties, system.losses) if n is not None) == 36
    differences = [sentence.difference for sentence in comparison.most_different]
    assert differences == sorted(differences, reverse=True)
    assert sorted(sentence.line for sentence in comparison.most_different) == list(range(1, 37))


def test_buckets_hold_every_sentence_once(comparison: Comparison) -> None:
    assert {b.bucket for b in comparison.by_length} <= {
        "1-5",
        "6-10",
        "11-15",
        "16-20",
        "21-30",
        "31+",
    }
    for buckets in (comparison.by_length, comparison.by_rare_words):
        assert sum(bucket.sentences for bucket in buckets) == 36 == comparison.sentences
        assert all(
            bucket.sentences > 0 and list(bucket.bleu) == list(SYSTEMS) for bucket in buckets
        )
    short = [i for i, line in enumerate(REFERENCES) if len(line.split()) <= 5]
    bucket = comparison.by_length[0]
    assert (bucket.bucket, bucket.sentences) == ("1-5", len(short))
    outputs, references = ([lines[i] for i in short] for lines in (SYSTEMS["good"], REFERENCES))
    assert bucket.bleu["good"] == BLEU().corpus_score(outputs, [references]).score


def test_lengths_and_rare_words_are_those_of_the_source() -> None:
    sources = [
        "Der Hund.",
        "der HUND schläft!",
        "… —",
        "ein " * 6,
        " ".join("w" * n for n in range(1, 32)),
    ]
    systems = {"a": [""] * 5, "b": ["", "", "", "", "x"]}
    comparison = compare(systems, ["x"] * 5, sources)
    assert [(b.bucket, b.sentences) for b in comparison.by_length] == [
        ("0", 1),
        ("1-5", 2),
        ("6-10", 1),
        ("31+", 1),
    ]
    assert [(b.bucket, b.sentences) for b in comparison.by_rare_words] == [
        ("0", 3),
        ("1", 1),
        ("3+", 1),
    ]
    assert (comparison.measured_on, comparison.rare) == ("source", "once in the source")
    json.dumps(asdict(comparison), allow_nan=False)  # numbers even where nothing is said
    train = ["Der der", "der hund Hund der", "hund der. hund", "hund schläft", "ein ein ein ein"]
    comparison = compare(systems, ["x"] * 5, sources, train)
    # der and hund occur 5 times, ein 4 times, the others less.
    assert [(b.bucket, b.sentences) for b in comparison.by_rare_words] == [
        ("0", 2),
        ("1", 1),
        ("3+", 2),
    ]
    assert comparison.rare == "fewer than 5 times in the training text"


def test_without_a_source_the_reference_is_measured(comparison: Comparison) -> None:
    assert (comparison.measured_on, comparison.rare) == ("reference", "once in the reference")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"systems": {"a": ["x"]}}, "1 system; compare at least two"),
        (
            {"systems": {"a": ["x"], "sources": ["x", "y"]}},
            "sources: 2 lines and 1 references; they must pair up",
        ),
        ({"sources": ["x", "y"]}, "sources: 2 lines and 1 references"),
        ({"references": []}, "a: 1 lines and 0 references"),
        ({"train": ["x"]}, "train counts the rare words of sources, which are missing"),
    ],
)
def test_texts_must_pair_up(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        compare(**{"systems": {"a": ["x"], "b": ["x"]}, "references": ["x"]} | keys)
