"""Held-out sets: disjoint by sentence, and a function of the text alone."""

import hashlib
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seq2see.text.history import History, fingerprints, in_text_order
from seq2see.text.hold_out import default_size, hold_out
from seq2see.text.parallel import normalised
from seq2see.text.separation import split_again

Pair = tuple[str, str]
sentences = st.integers(0, 25).map("s{}".format)


def chosen(pairs: list[Pair], count: int, parts: int, seen: Sequence[bool] = ()) -> list[int]:
    flags = np.array([*seen] or [False] * len(pairs))
    choice = hold_out(fingerprints(pairs), in_text_order(pairs), count, parts, flags)
    return [int(number) for number in choice]


def divided(pairs: list[Pair], set_of: Sequence[int], parts: int = 2) -> list[list[Pair]]:
    """The training set, and the held-out sets."""
    numbered = list(zip(pairs, set_of, strict=True))
    return [[pair for pair, place in numbered if place == part] for part in range(parts + 1)]


def chosen_by_text(pairs: list[Pair], count: int, parts: int) -> list[int]:
    """The choice of earlier versions: union–find over texts, whose choice runs rely on."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        return index if parent[index] == index else root(parent[index])

    for side in (0, 1):
        first: dict[str, int] = {}
        for index, pair in enumerate(pairs):
            ends = root(index), root(first.setdefault(normalised(pair[side]), index))
            parent[max(ends)] = min(ends)
    groups: dict[int, list[int]] = {}
    for index in range(len(pairs)):
        groups.setdefault(root(index), []).append(index)
    large = max(1, count // 100)
    count = min(count, len(pairs) // parts)
    keys = [hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest() for pair in pairs]

    def order(group: list[int]) -> tuple[int, bytes]:
        return len(group) if len(group) > large else 0, min(keys[index] for index in group)

    sizes = [0] * parts
    set_of = [0] * len(pairs)
    for group in sorted(groups.values(), key=order):
        part = next((part for part in range(parts) if sizes[part] + len(group) <= count), None)
        if part is not None:
            sizes[part] += len(group)
            for index in group:
                set_of[index] = part + 1
    return set_of


@given(
    pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=60),
    count=st.integers(1, 300),
    parts=st.integers(1, 2),
)
def test_the_choice_is_that_of_earlier_versions(pairs: list[Pair], count: int, parts: int) -> None:
    assert chosen(pairs, count, parts) == chosen_by_text(pairs, count, parts)


def test_a_long_chain_is_one_group() -> None:
    chain = [(f"s{number // 2}", f"t{(number + 1) // 2}") for number in range(999)]
    alone = [(f"a{number}", f"b{number}") for number in range(30)]
    pairs = random.Random(1).sample(chain + alone, len(chain) + len(alone))
    train, val = divided(pairs, chosen(pairs, 20, 1), 1)
    assert {*chain} <= {*train} and len(val) == 20


@given(
    pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=60),
    count=st.integers(1, 9),
)
def test_what_is_held_out_is_never_trained_on(pairs: list[Pair], count: int) -> None:
    train, val, test = divided(pairs, chosen(pairs, count, 2))
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
    again = divided(shuffled, chosen(shuffled, count, 2))
    assert [sorted(part) for part in again] == [sorted(p) for p in (train, val, test)]


def test_case_and_spacing_do_not_make_another_sentence() -> None:
    pairs = [("Hallo du", "a"), ("hallo  DU ", "b"), ("x", "B")] + [
        (f"s{n}", f"t{n}") for n in range(97)
    ]
    for part in divided(pairs, chosen(pairs, 5, 2)):
        assert sum(pair in pairs[:3] for pair in part) in (0, 3)


def test_large_groups_stay_in_training() -> None:
    large = [
        (f"dasselbe {size}", f"always {size} {number}")
        for size in (300, 40)
        for number in range(size)
    ]
    pairs = large + [(f"s{number}", f"t{number}") for number in range(660)]
    train, val = divided(pairs, chosen(pairs, 50, 1), 1)
    assert set(large) <= set(train) and len(val) == 50


def test_the_default_adapts_to_small_corpora() -> None:
    sizes = {1: 1, 39: 1, 100: 5, 20_000: 1000, 1_000_000: 1000}
    assert {pairs: default_size(pairs) for pairs in sizes} == sizes


@given(
    pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=60),
    known=st.sets(sentences, max_size=9),
)
def test_no_group_with_a_known_sentence_is_held_out(pairs: list[Pair], known: set[str]) -> None:
    seen = [bool(known & {*pair}) for pair in pairs]
    train, *held_out = divided(pairs, chosen(pairs, 9, 2, seen))
    assert sorted([*train, *held_out[0], *held_out[1]]) == sorted(pairs)
    for part in held_out:
        assert not known & {text for pair in part for text in pair}


@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=60))
def test_a_split_is_repeated_whatever_the_duplicates(pairs: list[Pair]) -> None:
    first = divided(pairs, chosen(pairs, 9, 2))
    prints = [fingerprints(part) for part in first]
    history = History(prints[0], {"val": prints[1], "test/test": prints[2]})
    again = split_again(fingerprints(pairs), history, ["val", "test"])
    assert divided(pairs, again.tolist()) == first
