"""What a search is told and what it finds, whichever engine searches; without torch, which not every engine needs."""

import math
from dataclasses import dataclass

from seq2see.recipe.schema import Recipe


@dataclass(frozen=True)
class Search:
    """How to search: beam 1 is greedy."""

    beam: int = 4
    length_penalty: float = 0.6
    max_ratio: float = 2.0  # at most ratio × source tokens + 10 target tokens
    min_length: int = 0
    most: int | None = None  # target tokens, </s> included, that the model has positions for

    @classmethod
    def of(cls, recipe: Recipe, beam: int | None = None) -> "Search":
        """As a recipe says, with another beam if one is given."""
        decode, model = recipe.decode, recipe.model
        return cls(
            decode.beam if beam is None else beam,
            decode.length_penalty,
            decode.max_ratio,
            decode.min_length,
            model.max_positions if model.positions == "learned" else None,
        )

    def penalty(self, length: int) -> float:
        """lp(Y) = ((5 + |Y|) / 6)^α, after Wu et al. (2016), with </s> counted; scores are divided by it."""
        return float(((5 + length) / 6) ** self.length_penalty)

    def limit(self, tokens: int) -> int:
        """The most target tokens, </s> included, for so many of the source; never fewer than the least length needs."""
        limit = max(math.ceil(tokens * self.max_ratio) + 10, self.min_length + 1)
        return limit if self.most is None else min(limit, self.most)

    def check(self, n_best: int) -> None:
        if not 1 <= n_best <= self.beam:
            raise ValueError(f"n_best ({n_best}) must be between 1 and the beam ({self.beam})")


@dataclass(frozen=True)
class Hypothesis:
    """A translation as ids without </s>, its log-probability with </s>, and its score after the length penalty."""

    ids: list[int]
    log_probability: float
    score: float
