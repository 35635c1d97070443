"""Score cards hold the scores, the versions and the machine."""

import platform

import sacrebleu
import torch

from seq2see.scoring.card import card


def test_a_card_holds_scores_sums_versions_and_machine() -> None:
    tests = {"news": {"bleu": 31.5, "corpus_sha256": "abc"}}
    holds = card(tests, training={"seconds": 5})
    assert holds["tests"] == tests
    assert holds["training"] == {"seconds": 5}
    assert holds["versions"]["python"] == platform.python_version()
    assert holds["versions"]["sacrebleu"] == sacrebleu.__version__
    assert (
        holds["machine"]["threads"] == torch.get_num_threads() and holds["machine"]["memory_gb"] > 0
    )
