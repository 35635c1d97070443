"""Scores are sacreBLEU's, with the signature beside them."""

import json
import math
import platform
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import sacrebleu
import torch

from seq2see.errors import InputError
from seq2see.scoring import bleu as evaluate
from seq2see.tasks.translate import Scored

OUTPUTS = ["The dog runs in the park .", "a cat sleeps on the red sofa", "", "Two men are cooking."]
REFERENCES = [
    "A dog runs in the park.",
    "A cat sleeps on the red sofa",
    "Nobody is here.",
    "Two men are cooking.",
]


def test_scores_are_those_of_sacrebleu() -> None:
    scores = evaluate.score(OUTPUTS, REFERENCES)
    bleu = sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES])
    assert scores.bleu == bleu.score and 0 < scores.bleu < 100
    assert scores.precisions == bleu.precisions and scores.brevity_penalty == bleu.bp < 1
    assert scores.length_ratio == bleu.sys_len / bleu.ref_len
    assert scores.chrf == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    lowercased = sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], lowercase=True).score
    assert scores.bleu_lowercased == lowercased > scores.bleu
    assert scores.accuracy == 0.25 and scores.sentences == 4


def test_the_signatures_say_how() -> None:
    scores = evaluate.score(OUTPUTS, REFERENCES)
    version = f"version:{sacrebleu.__version__}"
    assert scores.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert scores.chrf_signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"


def test_the_lines_for_a_reader_multiply_up() -> None:
    scores = evaluate.score(OUTPUTS, REFERENCES)
    text = "\n".join(scores.lines())
    penalty = float(re.search(r"= +([\d.]+) \(brevity", text)[1])  # type: ignore[index]
    precisions = [float(each) for each in re.findall(r"\d-grams ([\d.]+)", text)]
    mean = torch.tensor(precisions).log().mean().exp().item()
    assert len(precisions) == 4 and penalty * mean == pytest.approx(scores.bleu, rel=0.01)
    assert scores.signature in text and "25.0% of 4 sentences" in text


def test_a_perfect_and_an_empty_output() -> None:
    assert evaluate.score(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    nothing = evaluate.score([""] * 4, REFERENCES)
    assert nothing.bleu == nothing.chrf == nothing.length_ratio == nothing.accuracy == 0


@pytest.mark.parametrize(("outputs", "references"), [(3, 4), (4, 3), (0, 0), (0, 1)])
def test_outputs_and_references_must_pair_up(outputs: int, references: int) -> None:
    with pytest.raises(
        ValueError, match=f"{outputs} outputs and {references} references; they must pair up"
    ):
        evaluate.score(OUTPUTS[:outputs], REFERENCES[:references])


def test_a_card_holds_scores_sums_versions_and_machine() -> None:
    scores = evaluate.score(OUTPUTS, REFERENCES)
    card = evaluate.card(
        {"news": {**asdict(scores), "corpus_sha256": "abc"}}, training={"seconds": 5}
    )
    assert (
        card["tests"]["news"]["bleu"] == scores.bleu
        and card["tests"]["news"]["corpus_sha256"] == "abc"
    )
    assert card["training"] == {"seconds": 5}
    assert card["versions"]["python"] == platform.python_version()
    assert card["versions"]["sacrebleu"] == sacrebleu.__version__
    assert (
        card["machine"]["threads"] == torch.get_num_threads() and card["machine"]["memory_gb"] > 0
    )


def scored(*log_probabilities: float) -> Scored:
    return Scored(sum(log_probabilities), ["x"] * len(log_probabilities), list(log_probabilities))


def test_perplexity_is_per_token() -> None:
    found = evaluate.likelihood([scored(-1.0, -2.0), scored(-3.0)])
    assert (found.log_probability, found.tokens) == (-6.0, 3) and found.perplexity == pytest.approx(
        math.exp(2)
    )
    assert found.accuracy is None and found.pairs2 is None
    assert found.rows(["two words", "one\ttab"]) == [
        "-3.000000\t2\ttwo words",
        "-3.000000\t1\tone\ttab",
    ]
    says = "2 pairs · 3 tokens with </s> · perplexity 7.389 a token · log-probability -3.000 a pair"
    assert found.summary() == says
    assert evaluate.likelihood([scored(-1e6)]).perplexity < math.inf  # JSON knows no infinity


def test_a_tie_with_the_rival_is_no_win() -> None:
    pairs = [scored(-1.0), scored(-2.0), scored(-3.0)]
    found = evaluate.likelihood(pairs, [scored(-2.0), scored(-2.0), scored(-1.0, -1.0)])
    assert found.accuracy == pytest.approx(1 / 3)
    rows = ["-1.000000\t-2.000000\t1", "-2.000000\t-2.000000\t0", "-3.000000\t-2.000000\t0"]
    assert found.rows(["", "", ""]) == rows
    assert found.perplexity == pytest.approx(math.exp(2))  # of the first alone
    assert found.summary().endswith(" · the first is the likelier in 33.3%")


def test_sacrebleus_own_command_gives_the_same_to_the_last_digit(tmp_path: Path) -> None:
    outputs = [*OUTPUTS, "größer, „so“ … 漢字 & 1,5 <unk>", "It's 5-6 o'clock"]
    references = [*REFERENCES, "Größer: „so“ … 漢字 & 1,5", "It's 5-6 o'clock."]
    evaluate.write(outputs, tmp_path / "out.txt")
    (tmp_path / "reference.txt").write_text("\n".join(references) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "reference.txt",
        "-i",
        "out.txt",
        "-m",
        "bleu",
        "chrf",
        "-w",
        "15",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    bleu, chrf = json.loads(done.stdout)
    scores = evaluate.score(outputs, references)
    assert (bleu["score"], bleu["signature"]) == (scores.bleu, scores.signature)
    assert (chrf["score"], chrf["signature"]) == (scores.chrf, scores.chrf_signature)
    ratio = float(bleu["verbose_score"].partition("ratio = ")[2].split()[0])
    assert ratio == pytest.approx(scores.length_ratio, abs=5e-4)


def test_where_translations_cannot_be_written(tmp_path: Path) -> None:
    source, folder = tmp_path / "source.txt", tmp_path / "folder"
    source.write_text("text")
    folder.mkdir()
    (tmp_path / "link").symlink_to(source)
    for path in (source, tmp_path / "link", folder / ".." / "source.txt"):
        with pytest.raises(InputError, match=f"--out {path}: is an input"):
            evaluate.check(path, tmp_path / "other.txt", source)
    with pytest.raises(
        InputError, match=f"--out {tmp_path}/no/out: there is no folder {tmp_path}/no"
    ):
        evaluate.check(tmp_path / "no" / "out", source)
    for path in (folder, Path("/dev/null")):
        with pytest.raises(InputError, match=f"--out {path}: there already, and not a file"):
            evaluate.check(path, source)
    with pytest.raises(InputError, match=f"--out {folder}: cannot write: Is a directory"):
        evaluate.write(["a"], folder)
    evaluate.check(tmp_path / "new", source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "source.txt"]
