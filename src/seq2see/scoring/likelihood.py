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
    accuracy: float | None = None  # wins / pairs
    wins: int | None = None  # pairs likelier than their rival
    ties: int | None = None  # pairs exactly as likely
    pairs2: list[Scored] | None = None  # the rivals

    def rows(self, texts: Sequence[str]) -> list[str]:
        """One row per pair: log p, number of tokens and text.

        With rivals: log p of both, 1 if the first is the likelier, else 0, and "tie" if neither.
        """
        if self.pairs2 is None:
            return [
                f"{pair.log_probability:.6f}\t{len(pair.tokens)}\t{text}"
                for pair, text in zip(self.pairs, texts, strict=True)
            ]
        rows = []
        for pair, rival in zip(self.pairs, self.pairs2, strict=True):
            first, second = pair.log_probability, rival.log_probability
            tie = "\ttie" if first == second else ""
            rows.append(f"{first:.6f}\t{second:.6f}\t{first > second:d}{tie}")
        return rows

    def summary(self) -> str:
        """Sum up in one line."""
        summary = (
            f"{len(self.pairs)} pairs · {self.tokens} tokens with </s> · "
            f"perplexity {self.perplexity:.3f} per token · "
            f"log-probability {self.log_probability / len(self.pairs):.3f} per pair"
        )
        if self.wins is None or self.ties is None:
            return summary
        count = len(self.pairs)
        losses = count - self.wins - self.ties
        verdict = f"better in {self.wins} of {count}, worse in {losses}, tied in {self.ties}"
        return f"{summary} · the first is {verdict}"


def likelihood(scored: Sequence[Scored], rivals: Sequence[Scored] = ()) -> Likelihood:
    """Sum up forced decoding, and compare each translation with its rival if there are rivals."""
    total = sum(pair.log_probability for pair in scored)
    tokens = sum(len(pair.tokens) for pair in scored)
    perplexity = math.exp(min(-total / tokens, LARGEST_EXPONENT))
    if not rivals:
        return Likelihood(perplexity, total, tokens, list(scored))
    differences = [
        pair.log_probability - rival.log_probability
        for pair, rival in zip(scored, rivals, strict=True)
    ]
    wins = sum(difference > 0 for difference in differences)
    ties = differences.count(0.0)
    return Likelihood(
        perplexity,
        total,
        tokens,
        list(scored),
        accuracy=wins / len(scored),
        wins=wins,
        ties=ties,
        pairs2=list(rivals),
    )
