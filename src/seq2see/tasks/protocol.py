"""The contract of a task; the training loop knows no task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from seq2see.batches import Examples
from seq2see.models.directory import ModelDirectory
from seq2see.models.init import Rows
from seq2see.recipe.schema import Recipe
from seq2see.text.history import History
from seq2see.text.progress import Progress, silent
from seq2see.text.tokenizers import Tokenizers
from seq2see.training.report import Validation


@dataclass(frozen=True)
class Report:
    """Scores of a model on a test set: the entry of its score card, and the same as text."""

    values: dict[str, Any]
    lines: list[str]


class Opened(Protocol):
    """A model in use, as `Task.open` returns it."""

    @property
    def recipe(self) -> Recipe: ...
    @property
    def model(self) -> Any: ...


class Reader(Protocol):
    """A model in use that reads or writes texts."""

    @property
    def tokenizers(self) -> Tokenizers: ...


class Data(Protocol):
    """The data of a recipe, read and checked."""

    grows: ClassVar[bool]  # whether a run may continue on more of it
    parts: dict[str, dict[str, Any]]  # training and validation set: their sizes and SHA-256
    tests: list[str]
    notes: Sequence[str]  # remarks for the user on how the files were read
    history: History  # fingerprints of all of it
    left_out: int  # training examples that share a sentence with a held-out set
    overlap: Mapping[str, int]  # the same, by set; an example may share one with several
    seen: dict[str, int]  # held-out examples left out since a parent was trained on them

    def prepare(self, folder: Path, parent: ModelDirectory | None) -> None:
        """Make ids or pixels of the data, by the parent's vocabulary if there is a parent.

        What a model needs besides its weights, such as tokenizers, is written to the folder.
        """
        ...

    def train(self, epoch: int) -> Examples:
        """The examples of an epoch."""
        ...

    def summary(self) -> str:
        """One line on the prepared data."""
        ...


class Task(Protocol):
    """A task under one recipe."""

    medium: ClassVar[str]  # text or pictures; models of one medium can start from each other
    command: ClassVar[str]  # that its models are for
    unit: ClassVar[str]  # that speed is counted in

    def __init__(self, recipe: Recipe) -> None: ...

    def check(self) -> None:
        """Raise ValueError for keys, or values together, that make no sense for the task."""
        ...

    def data(
        self,
        where: Path | None,
        history: History,
        progress: Progress = silent,
        folder: Path | None = None,
    ) -> Any:
        """Read the data of the recipe (a `Data`), which `where` is the folder of.

        The history is that of the run, if it has begun, or what its parent hands down. The folder
        of the run may hold what an earlier start has found out about the data.
        """
        ...

    def build(self, data: Any) -> nn.Module:
        """Build the recipe's model for prepared data, with fresh weights."""
        ...

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Compute the training criterion, summed over the targets of a batch."""
        ...

    def validate(self, model: nn.Module, data: Any, share: float = 1.0) -> Validation:
        """Validate a model on a share of the validation set, spread over it."""
        ...

    def score(self, opened: Any, data: Any, test: str) -> Report:
        """Score a model on a test set of the data."""
        ...

    def open(self, directory: ModelDirectory, device: torch.device, merge: int | None) -> Any:
        """Open a model directory of this task (an `Opened`); `merge` tokens in each layer."""
        ...

    def inside(self) -> str:
        """Name the views that the explorer has of a model, or say which command shows its inside.

        One of translation, continuation, blanks, label and picture.
        """
        ...

    def rows(self, vocabulary: Any) -> Rows:
        """Name what the rows of embedding and output matrices stand for, for `--init`.

        The vocabulary is the prepared data's or another model directory's.
        """
        ...
