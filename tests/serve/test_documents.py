"""Translations of whole texts, made of those of their sentences."""

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from seq2see.decoding.long_text import Translation
from seq2see.serve.documents import Rank
from seq2see.text.documents import Steps


def test_scores_are_those_of_the_first_round() -> None:
    def steps() -> Steps[str]:
        yield ["one", "two"]
        yield ["two with a stand-in", "two with another"]
        return "done"

    rank = Rank(steps(), 1, "prefix")
    rank.advance(None)
    assert rank.sentences() == [("one", "prefix"), ("two", "")]
    rank.advance([[Translation("1", -1.0, -0.5), Translation("i", -2.0, -0.75)]] * 2)
    assert rank.sentences() == [("two with a stand-in", ""), ("two with another", "")]
    rank.advance([[Translation("2", -8.0, -4.0)]] * 2)
    assert (rank.text, rank.log_probability, rank.score) == ("done", -4.0, -1.5)
