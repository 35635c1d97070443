"""Search settings and hypotheses, shared by all engines; without torch, which not all need."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.text.specials import END

Prefixes = Sequence[Sequence[int]]  # forced first target tokens of each source

BROKEN_MODEL = "the model's output is not a number (NaN); its weights are broken"


@dataclass(frozen=True)
class Search:
    """Settings of a beam search; beam 1 is greedy search."""

    beam: int = 4
    length_penalty: float = 0.6
    max_ratio: float = 2.0  # at most max_ratio × source tokens + 10 target tokens
    min_length: int = 0
    most: int | None = None  # target positions of the model, </s> included; None: unlimited
    forbidden: tuple[int, ...] = ()  # tokens that no hypothesis may have

    @classmethod
    def of(cls, recipe: Recipe, beam: int | None = None) -> "Search":
        """Take a recipe's settings, with another beam if one is given."""
        decode = recipe.decode
        learned = recipe.model.positions == "learned"
        return cls(
            beam=decode.beam if beam is None else beam,
            length_penalty=decode.length_penalty,
            max_ratio=decode.max_ratio,
            min_length=decode.min_length,
            most=recipe.model.max_positions if learned else None,
        )

    def penalty(self, length: int) -> float:
        """lp(Y) = ((5 + |Y|) / 6)^α, by which log-probabilities are divided (Wu et al., 2016).

        |Y| includes </s>.
        """
        return float(((5 + length) / 6) ** self.length_penalty)

    def limit(self, tokens: int, forced: int = 0) -> int:
        """Maximum number of target tokens, </s> included, for a source of `tokens` tokens.

        A minimum length above the limit raises it, and so does a prefix of `forced` tokens.
        """
        limit = max(math.ceil(tokens * self.max_ratio) + 10, self.min_length + 1) + forced
        return limit if self.most is None else min(limit, self.most)

    def check(self, n_best: int) -> None:
        """Refuse more hypotheses than the beam can hold."""
        if not 1 <= n_best <= self.beam:
            raise ValueError(f"n_best ({n_best}) must be between 1 and the beam ({self.beam})")
        if END in self.forbidden:
            raise InputError("</s> cannot be forbidden: every hypothesis ends with it")

    def check_prefixes(self, sources: Sequence[Sequence[int]], prefixes: Prefixes) -> None:
        """Refuse prefixes after which the model has no position left."""
        for index, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
            limit = self.limit(len(source), len(prefix))
            if len(prefix) >= limit:
                rule = f"the model takes fewer than {limit}"
                raise InputError(f"prefixes[{index}]: {len(prefix)} tokens; {rule}")
            if not set(self.forbidden).isdisjoint(prefix):
                raise InputError(f"prefixes[{index}]: it has a token that is forbidden")


@dataclass(frozen=True)
class Hypothesis:
    """A translation as token ids, and its score: log-probability / length penalty."""

    ids: list[int]  # without </s>
    log_probability: float  # with </s>
    score: float
