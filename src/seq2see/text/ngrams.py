"""The language model before neural ones: counted n-grams, smoothed (Kneser and Ney 1995; Chen and Goodman 1998)."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from seq2see.text.vocab import BEGIN, END, PAD

Context = tuple[int, ...]
Row = tuple[NDArray[np.int64], NDArray[np.int64]]  # words, and how often each came


class NGrams:
    """p(w | h) = max(c(h w) − D, 0) / c(h) + γ(h) · p(w | h without its first word), down to all ids alike.

    Modified Kneser–Ney, interpolated: D is one of three by whether the count is 1, 2 or more, γ gives back what they
    took, and below the highest order c counts the different words before, not how often: "Francisco" is frequent, yet
    comes after one word only. Ids are those of a neural model's vocabulary, so that perplexities compare: each sentence
    ends with </s>, which counts, and an unknown word is <unk>, a word like others.
    """

    def __init__(self, order: int, size: int, sentences: Iterable[Sequence[int]]) -> None:
        """Count sentences, ids without <s> and </s>, of a vocabulary of `size`."""
        if order < 1:
            raise ValueError(f"order ({order}) must be at least 1")
        self.order, self.size = order, size
        grams: Counter[Context] = Counter()
        for sentence in sentences:
            ids = (BEGIN, *sentence, END)
            for end in range(
                2, len(ids) + 1
            ):  # of what ends with a word, since <s> is never written
                grams.update(ids[start:end] for start in range(max(0, end - order), end))
        rows: dict[Context, dict[int, int]] = {}
        for gram, count in _adjusted(grams, order).items():
            rows.setdefault(gram[:-1], {})[gram[-1]] = count
        self.counts: dict[Context, Row] = {}
        how_many = [
            Counter[int]() for _ in range(order)
        ]  # n-grams have each count, by the length of their context
        for context, row in rows.items():
            self.counts[context] = np.fromiter(row, np.int64), np.fromiter(row.values(), np.int64)
            how_many[len(context)].update(row.values())
        self.discounts = list(map(_discounts, how_many))

    def probabilities(self, before: Sequence[int]) -> NDArray[np.float64]:
        """p of every id (V,) after `before`, which begins with <s> at the start of a sentence; they sum to one."""
        found = np.ones(self.size)
        found[[BEGIN, PAD]] = 0.0  # never written
        found /= found.sum()
        for length in range(min(self.order - 1, len(before)) + 1):
            context = tuple(before[len(before) - length :])
            if context not in self.counts:
                break  # nor was anything longer seen
            words, counts = self.counts[context]
            taken, total = self.discounts[length][np.minimum(counts, 3)], counts.sum()
            found *= taken.sum() / total
            found[words] += (counts - taken) / total
        return found

    def log_probabilities(self, sentence: Sequence[int]) -> list[float]:
        """log p of each id of a sentence, </s> last."""
        ids = (BEGIN, *sentence, END)
        contexts = [ids[max(0, end - self.order + 1) : end] for end in range(1, len(ids))]
        return [
            math.log(self.probabilities(before)[id])
            for before, id in zip(contexts, ids[1:], strict=True)
        ]

    def perplexity(self, sentences: Iterable[Sequence[int]]) -> float:
        """e^(−log p per token), </s> included."""
        found = [each for sentence in sentences for each in self.log_probabilities(sentence)]
        return math.exp(-sum(found) / len(found))


def _adjusted(grams: Counter[Context], order: int) -> Counter[Context]:
    """Counts of the highest order and of what begins a sentence; of other n-grams the different words before."""
    adjusted = Counter(
        {gram: count for gram, count in grams.items() if len(gram) == order or gram[0] == BEGIN}
    )
    adjusted.update(gram[1:] for gram in grams if len(gram) > 1)
    return adjusted


def _discounts(how_many: Counter[int]) -> NDArray[np.float64]:
    """What is taken from counts of 0, 1, 2 and more; half of one where a text is too small to tell."""
    found = [0.0, 0.5, 0.5, 0.5]
    if how_many[1] and how_many[2]:
        share = how_many[1] / (how_many[1] + 2 * how_many[2])
        for count in (1, 2, 3):
            if how_many[count] and how_many[count + 1]:
                best = count - (count + 1) * share * how_many[count + 1] / how_many[count]
                found[count] = min(max(best, 0.05), count - 0.05)
    return np.array(found)
