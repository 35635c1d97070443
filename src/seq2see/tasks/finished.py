"""Finished runs, and whether one is given a larger budget."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.models.unfinished import saved_in
from seq2see.recipe.schema import Recipe

CARD = "scorecard.json"
KINDS = ("steps", "epochs", "minutes")


@dataclass(frozen=True)
class Total:
    """The budget of a run as a recipe gives it: a total of steps, epochs or minutes."""

    kind: str
    amount: float

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Total":
        """Read the budget of a recipe's table `train`, which has exactly one."""
        return next(cls(kind, table[kind]) for kind in KINDS if table.get(kind) is not None)

    def __str__(self) -> str:
        unit = self.kind.removesuffix("s") if self.amount == 1 else self.kind
        return f"{self.number} {unit}"

    @property
    def number(self) -> str:
        return f"{self.amount:,.10g}"

    def raised_to(self, larger: "Total") -> str:
        """Name both budgets: from 5 to 12 minutes."""
        return f"from {self.number if self.kind == larger.kind else self} to {larger}"

    def doubled(self) -> str:
        """The option that doubles the budget."""
        amount = f"{2 * self.amount:.10g}"
        return (
            f"--minutes {amount}" if self.kind == "minutes" else f"--set train.{self.kind}={amount}"
        )


@dataclass(frozen=True)
class Finished:
    """A finished run: its budget, and what it spent of each kind."""

    folder: Path
    budget: Total
    spent: dict[str, float]
    updates: int | None

    @classmethod
    def read(cls, folder: Path) -> "Finished | None":
        """Read the score card of a run; None if the run has none or no model."""
        path = folder / CARD
        if not path.exists() or not (folder / "model.safetensors").exists():
            return None
        try:
            card = json.loads(path.read_bytes())
            budget = Total.of(card["recipe"]["train"])
            training = card["training"]
            spent = {
                "steps": training["updates"] or 0,
                "epochs": training["epochs"] or 0,
                "minutes": (training["seconds"] or 0) / 60,
            }
            return cls(folder, budget, spent, training["updates"])
        except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
            raise InputError(f"{path}: not the score card of a run: {error!r}") from None

    def below(self, budget: Total) -> bool:
        """Whether a budget is larger: than the run's, or than what it spent of another kind."""
        if budget.kind == self.budget.kind:
            return budget.amount > self.budget.amount
        return budget.amount > self.spent[budget.kind]

    def extended(self, recipe: Recipe) -> Recipe | None:
        """The recipe that extends the run: the given one, or that of an interrupted extension."""
        begun = Recipe.load(self.folder / "recipe.toml").train
        for train in (recipe.train, begun):
            if self.below(Total.of(train.model_dump())):
                if not saved_in(self.folder / "checkpoints"):
                    raise InputError(f"{self.folder}: {self._without_checkpoints()}")
                return recipe.model_copy(update={"train": train})
        return None

    def hint(self) -> str:
        """One line that says how the run could be extended."""
        if not saved_in(self.folder / "checkpoints"):
            return f"this run is finished ({self.budget}); {self._without_checkpoints()}"
        more = "a larger budget extends it, also on a corpus that has grown"
        return f"this run is finished ({self.budget}); {more}: {self.budget.doubled()}"

    def _without_checkpoints(self) -> str:
        instead = f"--init {self.folder} with another --out starts from its weights"
        return f"it cannot be extended, as its checkpoints are gone; {instead}"
