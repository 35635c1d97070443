"""N-gram language model with modified Kneser–Ney smoothing (Chen and Goodman 1998)."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from seq2see.text.specials import BEGIN, END, PAD

Context = tuple[int, ...]
Row = tuple[NDArray[np.int64], NDArray[np.int64]]  # words, and their counts


class NGrams:
    """p(w | h) = max(c(h w) − D, 0) / c(h) + γ(h) · p(w | h without its first word).

    Interpolated modified Kneser–Ney (Kneser and Ney 1995; Chen and Goodman 1998): the discount D
    differs for counts of 1, 2 and more, γ redistributes the discounted mass, and the recursion
    ends in the uniform distribution. Below the highest order, c counts distinct preceding words
    rather than occurrences: "Francisco" is frequent, yet follows a single word. Ids are those of a
    neural model's vocabulary, so that perplexities are comparable: </s> is predicted and counts,
    and <unk> is a word like any other.
    """

    def __init__(self, order: int, size: int, sentences: Iterable[Sequence[int]]) -> None:
        """Count the n-grams of sentences, given as ids without <s> and </s>; `size` is V."""
        if order < 1:
            raise ValueError(f"order ({order}) must be at least 1")
        self.order = order
        self.size = size
        rows: dict[Context, dict[int, int]] = {}
        for gram, count in _adjusted(_count(order, sentences), order).items():
            rows.setdefault(gram[:-1], {})[gram[-1]] = count
        self.counts: dict[Context, Row] = {}
        # For each length of context: how many n-grams have a count of 1, 2, …
        counts_of_counts = [Counter[int]() for _ in range(order)]
        for context, row in rows.items():
            self.counts[context] = np.fromiter(row, np.int64), np.fromiter(row.values(), np.int64)
            counts_of_counts[len(context)].update(row.values())
        self.discounts = list(map(_discounts, counts_of_counts))

    def probabilities(self, before: Sequence[int]) -> NDArray[np.float64]:
        """Return p(w | before) for every id (V,); `before` starts with <s> in a new sentence."""
        probabilities = np.ones(self.size)
        probabilities[[BEGIN, PAD]] = 0.0  # never predicted
        probabilities /= probabilities.sum()
        for length in range(min(self.order - 1, len(before)) + 1):
            context = tuple(before[len(before) - length :])
            if context not in self.counts:
                break  # longer contexts are unseen, too
            words, counts = self.counts[context]
            discounts = self.discounts[length][np.minimum(counts, 3)]
            total = counts.sum()
            probabilities *= discounts.sum() / total
            probabilities[words] += (counts - discounts) / total
        return probabilities

    def log_probabilities(self, sentence: Sequence[int]) -> list[float]:
        """Return log p of each token of a sentence, </s> last."""
        ids = (BEGIN, *sentence, END)
        contexts = [ids[max(0, end - self.order + 1) : end] for end in range(1, len(ids))]
        return [
            math.log(self.probabilities(context)[id])
            for context, id in zip(contexts, ids[1:], strict=True)
        ]

    def perplexity(self, sentences: Iterable[Sequence[int]]) -> float:
        """exp(−mean log p), over all tokens including </s>."""
        scores = [score for sentence in sentences for score in self.log_probabilities(sentence)]
        return math.exp(-sum(scores) / len(scores))


def _count(order: int, sentences: Iterable[Sequence[int]]) -> Counter[Context]:
    """Count n-grams up to `order`, except those that end in <s>, which is never predicted."""
    grams: Counter[Context] = Counter()
    for sentence in sentences:
        ids = (BEGIN, *sentence, END)
        for end in range(2, len(ids) + 1):
            grams.update(ids[start:end] for start in range(max(0, end - order), end))
    return grams


def _adjusted(grams: Counter[Context], order: int) -> Counter[Context]:
    """Replace the counts of shorter n-grams by the number of distinct words that precede them.

    N-grams that begin a sentence have no preceding word and keep their counts.
    """
    adjusted = Counter(
        {gram: count for gram, count in grams.items() if len(gram) == order or gram[0] == BEGIN}
    )
    adjusted.update(gram[1:] for gram in grams if len(gram) > 1)
    return adjusted


def _discounts(counts_of_counts: Counter[int]) -> NDArray[np.float64]:
    """Estimate the discounts of counts 0, 1, 2 and ≥ 3; 0.5 where the text is too small."""
    n = counts_of_counts
    discounts = [0.0, 0.5, 0.5, 0.5]
    if n[1] and n[2]:
        share = n[1] / (n[1] + 2 * n[2])
        for count in (1, 2, 3):
            if n[count] and n[count + 1]:
                discount = count - (count + 1) * share * n[count + 1] / n[count]
                discounts[count] = min(max(discount, 0.05), count - 0.05)
    return np.array(discounts)
