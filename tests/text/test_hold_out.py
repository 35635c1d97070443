"""Held-out sets: disjoint by sentence, and a function of the text alone."""

import random

from hypothesis import given
from hypothesis import strategies as st

from seq2see.text.hold_out import default_size, hold_out

Pair = tuple[str, str]
sentences = st.integers(0, 25).map("s{}".format)


@given(
    pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=60),
    count=st.integers(1, 9),
)
def test_what_is_held_out_is_never_trained_on(pairs: list[Pair], count: int) -> None:
    train, val, test = hold_out(pairs, count, 2)
    assert sorted(train + val + test) == sorted(pairs)
    for part, others in ((val, train + test), (test, train + val)):
        assert len(part) <= count
        for side in (0, 1):
            assert not {pair[side] for pair in part} & {pair[side] for pair in others}
    positions = [pairs.index(pair) for pair in train]
    assert len(set(train)) < len(train) or positions == sorted(
        positions
    )  # in the order of the file
    shuffled = random.Random(count).sample(pairs, len(pairs))
    assert [sorted(part) for part in hold_out(shuffled, count, 2)] == [
        sorted(p) for p in (train, val, test)
    ]


def test_case_and_spacing_do_not_make_another_sentence() -> None:
    pairs = [("Hallo du", "a"), ("hallo  DU ", "b"), ("x", "B")] + [
        (f"s{n}", f"t{n}") for n in range(97)
    ]
    for part in hold_out(pairs, 5, 2):
        assert sum(pair in pairs[:3] for pair in part) in (0, 3)


def test_large_groups_stay_in_training() -> None:
    large = [
        (f"dasselbe {size}", f"always {size} {number}")
        for size in (300, 40)
        for number in range(size)
    ]
    train, val = hold_out(large + [(f"s{number}", f"t{number}") for number in range(660)], 50, 1)
    assert set(large) <= set(train) and len(val) == 50


def test_the_default_adapts_to_small_corpora() -> None:
    sizes = {1: 1, 39: 1, 100: 5, 20_000: 1000, 1_000_000: 1000}
    assert {pairs: default_size(pairs) for pairs in sizes} == sizes
