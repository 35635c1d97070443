"""Translations of whole texts, made of those of their sentences."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from seq2see.decoding.long_text import Translation
from seq2see.serve.documents import Rank, Wish, translate_texts
from seq2see.serve.models import Models, Place
from seq2see.serve.patience import Patience
from seq2see.serve.problems import Problem
from seq2see.serve.settings import Limits, Settings
from seq2see.serve.translating import Options
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


def test_a_request_is_bounded_by_its_first_round(trained: Path) -> None:
    lines = ["drei www.a.de acht", "zwei www.b.de vier", "eins www.c.de zwei"]

    async def translated(lines: list[str]) -> str:
        models = Models([Place("toy", trained)], "torch", Settings(limits=Limits(queue=3)))
        models.serve(models.open())
        asked = next(iter(models)), ["\n".join(lines)], Wish([""]), Options(1), Patience()
        ((best,),) = await translate_texts(*asked)
        return best.text

    text = asyncio.run(translated(lines))  # the second round asks for two parts of each line
    assert [line.count("www.") for line in text.split("\n")] == [1, 1, 1]
    with pytest.raises(Problem, match="has 4 sentences; at most 3"):
        asyncio.run(translated([*lines, "drei"]))
