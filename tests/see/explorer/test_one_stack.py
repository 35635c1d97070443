"""Models of one stack: what they read, and which words and positions there are."""

from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.see.explorer import one_stack
from seq2see.tasks.table import open_inside


@pytest.fixture(scope="module")
def opened(others: dict[str, Path]) -> dict[str, Any]:
    return {name: open_inside(place)[1] for name, place in others.items()}


def test_a_blank_is_a_word_of_its_own_between_two_parts(opened: dict[str, Any]) -> None:
    filler = opened["filler"]
    plain = one_stack.read_blanks(filler, "three two").tokens
    read = one_stack.read_blanks(filler, "<mask> three <mask> two<mask>").tokens
    blanks = [place for place, piece in enumerate(read.pieces) if piece == "<mask>"]
    assert [read.words[place] for place in blanks] == [0, 2, 4]
    rest = [place for place in range(len(read.pieces)) if place not in blanks]
    assert [read.pieces[place] for place in rest] == plain.pieces
    assert {read.words[place] for place in rest} == {1, 3, None}
    assert read.special == [False] * (len(read.pieces) - 1) + [True]


def test_a_language_model_reads_no_later_position(opened: dict[str, Any]) -> None:
    read = one_stack.read_on(opened["writer"], "three two one")
    size = len(read.tokens.pieces)
    assert read.mask.shape == (size, size) and read.tokens.pieces[0] == "<s>"
    for weights in read.weights.values():
        assert (weights[:, ~read.mask] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))


@pytest.mark.parametrize(("words", "most"), [(1, 40), (28, 4), (30, 0)])
def test_a_continuation_ends_where_the_model_does(
    opened: dict[str, Any], words: int, most: int
) -> None:
    view = one_stack.next_tokens(opened["writer"], "漢 " * words)  # two tokens each, of 60
    assert view["given"] == 2 * words
    assert len(view["steps"]) - view["given"] - 1 <= most
    assert view["steps"][-1]["token"] == "</s>"


def test_what_cannot_be_read_is_refused(opened: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="text: it is empty"):
        one_stack.next_tokens(opened["writer"], "\n")
    with pytest.raises(InputError, match="the text has 62 tokens; at most 60"):
        one_stack.labels(opened["labeller"], "漢 " * 31)
