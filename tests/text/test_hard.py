"""Hard sentences: equal arguments, equal sentences; as many of each kind; what must come through."""

from collections import Counter

import pytest

from seq2see.errors import InputError
from seq2see.text.hard import COUNT, KINDS, Hard, generate, lost

PAIRS = [("de", "en"), ("en", "de")]


@pytest.mark.parametrize("languages", PAIRS)
def test_there_are_as_many_of_each_kind_and_no_two_alike(languages: tuple[str, str]) -> None:
    sentences = generate(*languages)
    assert Counter(one.kind for one in sentences) == dict.fromkeys(KINDS, COUNT // len(KINDS))
    assert len({one.source for one in sentences}) == COUNT
    assert generate(*languages) == sentences
    assert generate(*languages, seed=2) != sentences


@pytest.mark.parametrize("languages", PAIRS)
def test_a_copy_keeps_everything_and_an_empty_line_nothing(languages: tuple[str, str]) -> None:
    for one in generate(*languages):
        assert not list(lost(one, one.source))
        assert len(list(lost(one, ""))) == len(one.wanted)
        assert "{" not in one.source
        assert bool(one.wanted) != bool(one.twin and one.reference)


def test_sentences_in_capitals_have_a_twin() -> None:
    chosen = [one for one in generate("de", "en") if one.kind == "capitals"]
    assert all(one.source == one.source.upper() for one in chosen)
    assert all(one.twin == one.twin.lower() for one in chosen)


@pytest.mark.parametrize(
    ("translation", "missing"),
    [
        ("It costs 1,299.99 euros.", 0),
        ("It costs 1.299,99 euros.", 0),
        ("It costs 11,299.99 euros.", 1),
        ("It costs 1,299.995 euros.", 1),
        ("It costs a lot.", 1),
    ],
)
def test_a_number_is_kept_in_either_notation(translation: str, missing: int) -> None:
    one = Hard("number", "", (("1.299,99", "1,299.99"),))
    assert len(list(lost(one, translation))) == missing


def test_each_piece_has_a_place_of_its_own() -> None:
    one = Hard("emoji", "", (("😀",), ("😀",)))
    assert len(list(lost(one, "Hello 😀"))) == 1
    assert not list(lost(one, "😀 Hello 😀"))
    twelve = Hard("number", "", (("12",), ("12.30", "12:30")))
    assert len(list(lost(twelve, "At 12:30"))) == 1


@pytest.mark.parametrize(
    ("languages", "count", "rule"),
    [
        (("de", "fr"), 300, "none for de-fr; there are de-en, en-de"),
        (("en", "en"), 300, "none for en-en"),
        (("de", "en"), 301, "301 must be a multiple of 6"),
        (("de", "en"), 600, "600 must be at most 300"),
    ],
)
def test_bad_input_is_refused(languages: tuple[str, str], count: int, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        generate(*languages, count=count)
