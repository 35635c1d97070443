"""BLEU of one sentence by hand: equal to sacreBLEU's, whatever the sentences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import FancyBboxPatch

from seq2see.errors import InputError
from seq2see.see import bleu

texts = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join)


@settings(max_examples=60)
@given(texts, texts)
def test_the_score_is_sacrebleus(output: str, reference: str) -> None:
    counted = bleu.count(output, reference, "13a")
    assert counted.bleu == pytest.approx(counted.official.bleu, abs=1e-9)


def test_an_ngram_of_the_reference_is_used_up_once() -> None:
    counted = bleu.count("the the cat", "the cat", "13a")
    verdicts = [[ngram.verdict for ngram in ngrams] for ngrams in counted.ngrams]
    assert verdicts == [
        [bleu.MATCHED, bleu.CLIPPED, bleu.MATCHED],
        [bleu.MISSING, bleu.MATCHED],
        [bleu.MISSING],
        [],
    ]
    assert [counted.matches(n) for n in (1, 2, 3, 4)] == [(2, 3), (1, 2), (0, 1), (0, 0)]


def test_the_chapters_example() -> None:
    counted = bleu.count("the cat sat on the mat", "the cat is on the mat", "13a")
    assert [counted.matches(n) for n in (1, 2, 3, 4)] == [(5, 6), (3, 5), (1, 4), (0, 3)]
    assert counted.precisions[3] == 0.5 / 3
    lines = counted.factors()
    assert lines[0] == "1-grams: 5 of 6 = 0.833" and lines[3].endswith("= 0.167, smoothed")
    assert lines[-1].startswith(f"sacreBLEU: {counted.bleu:.2f} (nrefs:1|")


def test_a_box_for_each_ngram_and_none_overlap() -> None:
    counted = bleu.count("a b c d e", "a b c e", "13a")
    (axes,) = bleu.draw(counted).axes
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == 5 + 4 + 3 + 2
    places = [(box.get_x(), box.get_x() + box.get_width(), box.get_y()) for box in boxes]
    for i, (start, end, y) in enumerate(places):
        others = places[:i] + places[i + 1 :]
        assert not any(y == other[2] and start < other[1] and other[0] < end for other in others)
    (table,) = counted.numbers()
    assert len(table.rows) == len(boxes) and table.rows[-1] == ["4", "b c d e", bleu.MISSING]


def test_a_short_output_is_penalised_and_an_empty_one_refused() -> None:
    counted = bleu.count("a b c d", "a b c d e f", "13a")
    assert counted.brevity_penalty == pytest.approx(2.718281828 ** (1 - 6 / 4))
    with pytest.raises(InputError, match=r"^OUTPUT has 0 words; a figure has 1 to 40"):
        bleu.count(" ", "a", "13a")
    with pytest.raises(InputError, match=r"^REFERENCE has 41 words"):
        bleu.count("a", "a " * 41, "13a")
