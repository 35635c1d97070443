"""Scores are sacreBLEU's, with the signature beside them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch

from seq2see.cli.options import write_lines
from seq2see.scoring.bleu import score

OUTPUTS = ["The dog runs in the park .", "a cat sleeps on the red sofa", "", "Two men are cooking."]
REFERENCES = [
    "A dog runs in the park.",
    "A cat sleeps on the red sofa",
    "Nobody is here.",
    "Two men are cooking.",
]


def test_scores_are_those_of_sacrebleu() -> None:
    scores = score(OUTPUTS, REFERENCES)
    bleu = sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES])
    assert scores.bleu == bleu.score and 0 < scores.bleu < 100
    assert scores.precisions == bleu.precisions and scores.brevity_penalty == bleu.bp < 1
    assert scores.length_ratio == bleu.sys_len / bleu.ref_len
    assert scores.chrf == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    lowercased = sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], lowercase=True).score
    assert scores.bleu_lowercased == lowercased > scores.bleu
    assert scores.accuracy == 0.25 and scores.sentences == 4


def test_the_signatures_say_how() -> None:
    scores = score(OUTPUTS, REFERENCES)
    version = f"version:{sacrebleu.__version__}"
    assert scores.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert scores.chrf_signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"


def test_the_factors_in_the_report_multiply_to_bleu() -> None:
    scores = score(OUTPUTS, REFERENCES)
    text = "\n".join(scores.report())
    penalty = float(re.search(r"= +([\d.]+) \(brevity", text)[1])  # type: ignore[index]
    precisions = [float(precision) for precision in re.findall(r"\d-grams ([\d.]+)", text)]
    mean = torch.tensor(precisions).log().mean().exp().item()
    assert len(precisions) == 4 and penalty * mean == pytest.approx(scores.bleu, rel=0.01)
    assert scores.signature in text and "25.0% of 4 sentences" in text


def test_a_perfect_and_an_empty_output() -> None:
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)
    nothing = score([""] * 4, REFERENCES)
    assert nothing.bleu == nothing.chrf == nothing.length_ratio == nothing.accuracy == 0


@pytest.mark.parametrize(("outputs", "references"), [(3, 4), (4, 3), (0, 0), (0, 1)])
def test_outputs_and_references_must_pair_up(outputs: int, references: int) -> None:
    with pytest.raises(
        ValueError, match=f"{outputs} outputs and {references} references; they must pair up"
    ):
        score(OUTPUTS[:outputs], REFERENCES[:references])


def test_sacrebleus_own_command_gives_the_same_to_the_last_digit(tmp_path: Path) -> None:
    outputs = [*OUTPUTS, "größer, „so“ … 漢字 & 1,5 <unk>", "It's 5-6 o'clock"]
    references = [*REFERENCES, "Größer: „so“ … 漢字 & 1,5", "It's 5-6 o'clock."]
    write_lines(tmp_path / "out.txt", outputs)
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
    scores = score(outputs, references)
    assert (bleu["score"], bleu["signature"]) == (scores.bleu, scores.signature)
    assert (chrf["score"], chrf["signature"]) == (scores.chrf, scores.chrf_signature)
    ratio = float(bleu["verbose_score"].partition("ratio = ")[2].split()[0])
    assert ratio == pytest.approx(scores.length_ratio, abs=5e-4)
