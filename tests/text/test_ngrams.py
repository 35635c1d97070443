"""N-grams with Kneser–Ney smoothing: proper distributions, discounts, longer contexts."""

import math
import random

import numpy as np
import pytest

from seq2see.text import captions
from seq2see.text.ngrams import NGrams
from seq2see.text.vocab import BEGIN, END, PAD, UNKNOWN, Vocab

orders = pytest.mark.parametrize("order", [1, 2, 3, 4])
SIZE = 11
SENTENCES = [[4, 5, 6, 4, 5], [4, 5, 7], [8, 4, 5, 6], [9], [4, 6, 6, 3], []]


@pytest.fixture(scope="module")
def texts() -> tuple[int, list[list[int]], list[list[int]]]:
    """A vocabulary of captions and two sets of them as its ids."""
    train, test = (
        [captions.words(c.target) for c in captions.generate(*of)]
        for of in (("train", 800), ("test", 100))
    )
    vocab = Vocab(sorted({word for words in train[:400] for word in words}))
    return len(vocab), list(map(vocab.ids, train)), list(map(vocab.ids, test))


@orders
def test_probabilities_sum_to_one_whatever_came_before(order: int) -> None:
    model, chance = NGrams(order, SIZE, SENTENCES), random.Random(order)
    contexts = [
        [chance.randrange(3, SIZE) for _ in range(length)] for length in range(6) for _ in range(5)
    ]
    for before in (*contexts, *([BEGIN, *context] for context in contexts), [4, 5], [BEGIN, 4, 5]):
        p = model.probabilities(before)
        assert p.shape == (SIZE,) and p.sum() == pytest.approx(1, abs=1e-12)
        possible = np.delete(p, [BEGIN, PAD])
        assert (possible > 0).all() and not p[[BEGIN, PAD]].any()


@orders
def test_they_sum_to_one_on_captions(
    order: int, texts: tuple[int, list[list[int]], list[list[int]]]
) -> None:
    size, train, test = texts
    model = NGrams(order, size, train)
    for sentence in test[:10]:
        for end in range(len(sentence)):
            assert model.probabilities([BEGIN, *sentence[:end]]).sum() == pytest.approx(1, abs=1e-9)


def test_perplexity_falls_with_the_order(
    texts: tuple[int, list[list[int]], list[list[int]]],
) -> None:
    size, train, test = texts
    one, two, three = (NGrams(order, size, train).perplexity(test) for order in (1, 2, 3))
    assert one > 2 * two > 2.1 * three > 10


def test_an_unseen_word_gets_the_discounted_mass() -> None:
    # Counts: 4 three times, 5 and </s> once; the discount is 0.5.
    p = NGrams(1, SIZE, [[4, 4, 4, 5]]).probabilities([])
    assert p[10] == p[UNKNOWN] == pytest.approx(1.5 / 5 / 9)
    assert p[4] == pytest.approx(2.5 / 5 + 1.5 / 5 / 9)
    assert p[END] == p[5] == pytest.approx(0.5 / 5 + 1.5 / 5 / 9)


def test_a_word_that_follows_one_word_only_is_not_expected_after_others() -> None:
    """ "Francisco" is frequent, but follows one word only; "dogs" is rarer, but follows many."""
    san, francisco, dogs = 4, 5, 6
    model = NGrams(2, 12, [[san, francisco]] * 9 + [[other, dogs] for other in (7, 8, 9, 10)])
    after_new = model.probabilities([11])
    assert after_new[dogs] > 2 * after_new[francisco]
    assert model.probabilities([san])[francisco] > 0.8


def test_log_probabilities_are_those_of_each_token_and_the_end() -> None:
    model = NGrams(3, SIZE, SENTENCES)
    scores = model.log_probabilities([4, 5, 6])
    before: list[list[int]] = [[BEGIN], [BEGIN, 4], [4, 5], [5, 6]]
    expected = [
        math.log(model.probabilities(b)[id]) for b, id in zip(before, (4, 5, 6, END), strict=True)
    ]
    assert scores == pytest.approx(expected)
    both = [*scores, *model.log_probabilities([9])]
    assert model.perplexity([[4, 5, 6], [9]]) == pytest.approx(math.exp(-sum(both) / 6))


def test_an_order_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^order \(0\) must be at least 1$"):
        NGrams(0, SIZE, SENTENCES)
