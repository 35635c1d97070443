"""The position of a run in its corpus, the time it took, and the scores of its checkpoints."""

from dataclasses import dataclass, field
from typing import Any

from seq2see.recipe.schema import TrainConfig


@dataclass
class Position:
    """Progress of a run; saved with every checkpoint."""

    update: int = 0
    epoch: int = 1
    batch: int = 0  # batches of this epoch that are done
    epoch_batches: int = 1
    batches: int = 0  # of all epochs
    samples: int = 0
    tokens: int = 0  # of the target side
    seconds: float = 0.0  # since the command began: preparation, training, validation, checkpoints
    preparation_seconds: float = 0.0  # of these: reading, tokenizer and encoding
    validation_seconds: float = 0.0  # of these: validation
    finish_seconds: float = 0.0  # expected between the last update and the score card
    validation_share: float = 0.0  # of the validation set that is used; 0: not chosen yet
    warmup: int = 0  # updates, if not as in the recipe
    validations: dict[str, float] = field(default_factory=dict)  # checkpoint → score
    due: list[str] = field(default_factory=list)  # all checkpoints but those of interruptions
    since_best: int = 0  # validations
    earlier: float | None = None  # score of the model that the run extends or starts from
    best_since: float | None = None  # the best score after it
    tenths: int = 0  # of the budget, at the last checkpoint
    corpus: str = ""  # SHA-256 of the training set, which `batch` is a place in

    def adopt(self, values: dict[str, Any]) -> None:
        """Take over the position that a checkpoint or another process holds."""
        vars(self).update(vars(Position(**values)))

    def name(self) -> str:
        """Name of the checkpoint of this update."""
        return f"update-{self.update:08d}"

    @property
    def epochs(self) -> float:
        """Completed epochs, the current one as a fraction."""
        return self.epoch - 1 + self.batch / self.epoch_batches

    def note_due(self) -> None:
        """Note that a checkpoint is due at this update, once."""
        if self.due[-1:] != [self.name()]:
            self.due.append(self.name())

    def stale(self, config: TrainConfig) -> bool:
        """Whether `patience` validations in a row have been no better."""
        return 0 < config.patience <= self.since_best

    def record(self, score: float) -> bool:
        """Note the score of this update's validation; return whether it is the best so far."""
        best = not self.validations or score > max(self.validations.values())
        self.since_best = 0 if best else self.since_best + 1
        self.validations[self.name()] = score
        self.best_since = score if self.best_since is None else max(score, self.best_since)
        return best

    def best(self) -> str:
        """Name of the best checkpoint."""
        return max(self.validations, key=lambda name: self.validations[name])

    def to_average(self, config: TrainConfig) -> list[str]:
        """Names of the checkpoints to average: the last, or those with the best scores."""
        names = sorted(self.validations)
        if config.average_of == "best":
            names.sort(key=lambda name: self.validations[name])
        return names[-config.average :]

    def needed(self, config: TrainConfig) -> set[str]:
        """Names of the checkpoints to resume from, to choose and to average."""
        return {self.name(), self.best(), *self.to_average(config)}

    def to_show(self, config: TrainConfig) -> list[str]:
        """Names of at most `keep` checkpoints at equal distances, the first among them.

        Distances are powers of two, so every choice is a part of those made before it.
        """
        if not config.keep:
            return []
        distance = 1
        while distance * config.keep < len(self.due):
            distance *= 2
        return self.due[::distance]
