"""Continued runs: with a larger budget, on a grown corpus, from another model's weights."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape

from seq2see.files import FolderLock
from seq2see.models.directory import ModelDirectory
from seq2see.tasks.finished import Finished, Total
from seq2see.tasks.protocol import Data
from seq2see.tasks.run_directory import Growth, last_choice
from seq2see.training.distributed import ALONE, World
from seq2see.training.loop import Training
from seq2see.training.schedule import learning_rate


@dataclass(frozen=True)
class Start:
    """Circumstances in which a run starts or continues."""

    device: torch.device
    origin: Path | None  # model directory that the run started from
    parent: ModelDirectory | None  # the same, if it starts only now
    finished: Finished | None  # the end that is extended
    growth: Growth | None
    held: FolderLock  # on the run directory
    world: World = ALONE


@dataclass(frozen=True)
class Overlap:
    """Held-out examples that were left out because an ancestor was trained on them."""

    checked: bool  # whether the parent and all before it have a history
    removed: dict[str, int]  # by set

    @classmethod
    def of(cls, data: Data) -> "Overlap":
        return cls(data.history.complete, data.seen)

    def values(self) -> dict[str, Any]:
        """Entries of log.jsonl and of the score card."""
        return asdict(self)

    def summary(self, parent: Path) -> str:
        if not self.checked:
            trained = f"{parent}, or a model before it, was trained on examples held out here"
            return f"unknown whether {trained}: it has no history.safetensors"
        if not self.removed:
            return f"{parent} was trained on none of the held-out examples"
        counts = ", ".join(f"{count:,} of {name}" for name, count in self.removed.items())
        return f"left out, as {parent} was trained on them: {counts}"


def adapt_position(training: Training, start: Start, digest: str) -> None:
    """Adapt a restored position to a larger budget and to a training set of another digest."""
    at = training.position
    reporter = training.reporter
    if start.finished is not None:
        before = start.finished.budget
        now = Total.of(training.config.model_dump())
        reporter.say(escape(f"extending the run {before.raised_to(now)}{_schedule(training)}"))
        reporter.write("extended", before=str(before), now=str(now))
        if at.update == start.finished.updates:  # else it was begun by an earlier process
            at.earlier = _earlier_score(training, start.finished.folder)
            at.best_since = None
        if at.stale(training.config) and at.update == start.finished.updates:
            at.since_best = 0
            stopped = f"it had stopped early, after {training.config.patience} validations"
            reporter.say(f"{stopped} without improvement; they are counted anew")
    if start.growth is not None:
        reporter.say(f"{start.growth}; epoch {at.epoch} begins anew with the same vocabulary")
        reporter.write("grown", **asdict(start.growth))
    # A run may have been killed after it was begun on the grown corpus.
    if start.growth is not None or at.corpus not in ("", digest):
        at.batch = 0


def _earlier_score(training: Training, folder: Path) -> float | None:
    """The validation score of a finished model; if that is an average, only the log knows it."""
    score = last_choice(folder).get("score")
    if score is None:
        return max(training.position.validations.values(), default=None)
    return -float(score) if training.config.choose == "loss" else float(score)


def no_gain(training: Training, start: Start) -> str:
    """One line if a run is no better than the model that it extends or starts from, else ""."""
    at, config = training.position, training.config
    if at.earlier is None or (at.best_since is not None and at.best_since > at.earlier):
        return ""
    if at.best_since is None:
        return "the extension gained nothing: its budget was too small for an update"
    before, since = (f"{abs(score):.3f}" for score in (at.earlier, at.best_since))
    figures = f"validation {config.choose} {before} before and {since} at best since"
    if start.finished is None:
        way = "a lower train.lr or a larger budget may help"
        return f"the run gained nothing over the weights it started from: {figures}; {way}"
    way = ""
    if config.schedule == "linear":
        raised = "train.schedule = 'linear' has raised the learning rate again"
        way = f"; {raised}, and a larger budget may help"
    return f"the extension gained nothing: {figures}{way}"


def _schedule(training: Training) -> str:
    """The way in which the learning rate differs from that of one long run."""
    config, at = training.config, training.position
    if config.schedule == "linear":
        progress = training.budget.progress()
        rate = learning_rate(config, training.width, at.update + 1, progress, at.warmup)
        share = rate / config.peak(training.width)
        return f"; the learning rate starts again at about {share:.0%} of its peak"
    if at.warmup:
        return f"; the warm-up was {at.warmup} updates"
    return ""
