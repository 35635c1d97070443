"""Likelihood of given translations: perplexity per token, and comparison with rivals."""

import math

import pytest

from seq2see.scoring.likelihood import Scored, likelihood


def scored(*log_probabilities: float) -> Scored:
    return Scored(sum(log_probabilities), ["x"] * len(log_probabilities), list(log_probabilities))


def test_perplexity_is_per_token() -> None:
    result = likelihood([scored(-1.0, -2.0), scored(-3.0)])
    assert (result.log_probability, result.tokens) == (
        -6.0,
        3,
    ) and result.perplexity == pytest.approx(math.exp(2))
    assert result.accuracy is None and result.pairs2 is None
    assert result.rows(["two words", "one\ttab"]) == [
        "-3.000000\t2\ttwo words",
        "-3.000000\t1\tone\ttab",
    ]
    says = "2 pairs · 3 tokens with </s> · perplexity 7.389 per token"
    says += " · log-probability -3.000 per pair"
    assert result.summary() == says
    assert likelihood([scored(-1e6)]).perplexity < math.inf  # JSON knows no infinity


def test_a_tie_with_the_rival_is_told_apart() -> None:
    pairs = [scored(-1.0), scored(-2.0), scored(-3.0)]
    result = likelihood(pairs, [scored(-2.0), scored(-2.0), scored(-1.0, -1.0)])
    assert (result.accuracy, result.wins, result.ties) == (pytest.approx(1 / 3), 1, 1)
    rows = ["-1.000000\t-2.000000\t1", "-2.000000\t-2.000000\t0\ttie", "-3.000000\t-2.000000\t0"]
    assert result.rows(["", "", ""]) == rows
    assert result.perplexity == pytest.approx(math.exp(2))  # of the first alone
    says = " · the first is better in 1 of 3, worse in 1, tied in 1"
    assert result.summary().endswith(says)
