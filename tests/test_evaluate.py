"""Scores are sacreBLEU's, with the signature beside them."""

import platform
import re

import pytest
import sacrebleu
import torch

from seq2see import evaluate

OUTPUTS = ["The dog runs in the park .", "a cat sleeps on the red sofa", "", "Two men are cooking."]
REFERENCES = ["A dog runs in the park.", "A cat sleeps on the red sofa", "Nobody is here.", "Two men are cooking."]


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
    with pytest.raises(ValueError, match=f"{outputs} outputs and {references} references; they must pair up"):
        evaluate.score(OUTPUTS[:outputs], REFERENCES[:references])


def test_a_card_holds_scores_sums_versions_and_machine() -> None:
    scores = evaluate.score(OUTPUTS, REFERENCES)
    card = evaluate.card({"news": scores}, {"news": "abc"}, training={"seconds": 5})
    assert card["tests"]["news"]["bleu"] == scores.bleu and card["tests"]["news"]["corpus_sha256"] == "abc"
    assert card["training"] == {"seconds": 5}
    assert card["versions"]["python"] == platform.python_version()
    assert card["versions"]["sacrebleu"] == sacrebleu.__version__
    assert card["machine"]["threads"] == torch.get_num_threads() and card["machine"]["memory_gb"] > 0
