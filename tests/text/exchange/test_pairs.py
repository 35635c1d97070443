"""Exchange: what is identical on both sides is exchanged on both, line by line."""

import re

import pytest

from seq2see.text.documents.standins import STAND_INS
from seq2see.text.exchange import Exchange
from seq2see.text.exchange.pairs import VARIED

PAIRS = [
    (f"Tom traf Maria Lind um {hour}:30 in Boston.", f"Tom met Mary Lind in Boston at {hour}:30.")
    for hour in range(2, 10)
] * 40
PLAIN = [("Die Hand ist kalt.", "The hand is cold.")] * 300


def exchanged(pairs: list[tuple[str, str]], share: float, seed: int = 1) -> list[tuple[str, str]]:
    return list(Exchange(("de", "en"), share, seed).of(pairs))


def test_a_line_depends_on_seed_and_place_alone() -> None:
    whole = exchanged(PAIRS, 0.5)
    assert exchanged(PAIRS, 0.5) == whole
    assert exchanged(PAIRS[:100], 0.5) == whole[:100]
    assert exchanged(PAIRS, 0.5, seed=2) != whole


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
def test_the_share_of_pairs_is_changed(share: float) -> None:
    exchange = Exchange(("de", "en"), share, 1)
    pairs = list(exchange.of(PAIRS))
    changed = sum(pair != other for pair, other in zip(pairs, PAIRS, strict=True))
    assert len(pairs) == len(PAIRS)
    assert exchange.counts["pairs"] == changed
    assert abs(changed / len(PAIRS) - share) < 0.1


def test_both_sides_get_the_same_names_and_numbers() -> None:
    kept = re.compile(r"(\w+) (?:traf|met) (?:Maria|Mary) (\w+)")
    for source, target in exchanged(PAIRS, 0.9):
        names, others = kept.search(source), kept.search(target)
        if names is None or others is None:
            assert "traf maria" in source  # in lower case
            continue
        assert names.groups() == others.groups()
        assert sorted(re.findall(r"\d+", source)) == sorted(re.findall(r"\d+", target))


def test_names_become_other_names_or_stand_ins() -> None:
    first = {target.split()[0] for _, target in exchanged(PAIRS, 0.9)}
    assert len(first) > 50
    assert first & set(STAND_INS)


def test_grouping_stays_that_of_its_side() -> None:
    pairs = [("Es kostet 1.299,99 Euro.", "It costs 1,299.99 euros.")] * 200
    for source, target in exchanged(pairs, 0.9):
        match = re.search(r"kostet (\d)\.(\d{3}),(\d\d) euro", source.lower())
        if match:
            assert "{},{}.{}".format(*match.groups()) in target


def test_pairs_with_nothing_in_common_are_varied_more_rarely() -> None:
    exchange = Exchange(("de", "en"), 0.9, 1)
    pairs = list(exchange.of(PLAIN))
    changed = [pair for pair in pairs if pair != PLAIN[0]]
    assert abs(len(changed) / len(PLAIN) - 0.9 * VARIED) < 0.1
    assert exchange.counts["names"] == exchange.counts["numbers"] == 0
    for source, target in changed:
        copy = source.replace("Die Hand ist kalt.", "")
        if source != PLAIN[0][0].lower() and copy not in ("„“", '""', "»«"):
            assert copy == target.replace("The hand is cold.", "")


def test_function_words_and_a_single_one_stay() -> None:
    pairs = [("In 1 Stunde.", "In 1 hour.")] * 100
    assert all("In 1 hour" in target for _, target in exchanged(pairs, 0.9))
