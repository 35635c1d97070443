"""Likelihood of given translations: perplexity, and how often each beats its rival."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LARGEST_EXPONENT = 700  # exp of more is infinite, which JSON cannot hold


@dataclass(frozen=True)
class Scored:
    """A given translation under forced decoding."""

    log_probability: float
    tokens: list[str]  # </s> last
    log_probabilities: list[float]  # one per token


@dataclass(frozen=True)
class Likelihood:
    """Likelihood of given translations and, given rivals, how often they are the likelier."""

    perplexity: float  # exp(− mean log p per token), </s> included
    log_probability: float
    tokens: int
    pairs: list[Scored]
    accuracy: float | None = None  # share of pairs likelier than their rival; ties do not count
    pairs2: list[Scored] | None = None  # the rivals

    def rows(self, texts: Sequence[str]) -> list[str]:
        """One row per pair: log p, number of tokens and text.

        With rivals: log p of both, and 1 if the first is the likelier, else 0.
        """
        if self.pairs2 is None:
            return [
                f"{pair.log_probability:.6f}\t{len(pair.tokens)}\t{text}"
                for pair, text in zip(self.pairs, texts, strict=True)
            ]
        rows = []
        for pair, rival in zip(self.pairs, self.pairs2, strict=True):
            first, second = pair.log_probability, rival.log_probability
            rows.append(f"{first:.6f}\t{second:.6f}\t{first > second:d}")
        return rows

    def summary(self) -> str:
        """Sum up in one line."""
        summary = (
            f"{len(self.pairs)} pairs · {self.tokens} tokens with </s> · "
            f"perplexity {self.perplexity:.3f} per token · "
            f"log-probability {self.log_probability / len(self.pairs):.3f} per pair"
        )
        if self.accuracy is not None:
            summary += f" · the first is the likelier in {self.accuracy:.1%}"
        return summary


def likelihood(scored: Sequence[Scored], rivals: Sequence[Scored] = ()) -> Likelihood:
    """Sum up forced decoding, and compare each translation with its rival if there are rivals."""
    total = sum(pair.log_probability for pair in scored)
    tokens = sum(len(pair.tokens) for pair in scored)
    perplexity = math.exp(min(-total / tokens, LARGEST_EXPONENT))
    if not rivals:
        return Likelihood(perplexity, total, tokens, list(scored))
    wins = sum(
        pair.log_probability > rival.log_probability
        for pair, rival in zip(scored, rivals, strict=True)
    )
    return Likelihood(perplexity, total, tokens, list(scored), wins / len(scored), list(rivals))
