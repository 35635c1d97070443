"""The training loop: from a fresh or resumed model to the weights that validation chose."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from seq2see.batches import Examples, epoch_batches
from seq2see.errors import InputError, WorkError
from seq2see.models.weights import Tensors, copy_into, weights
from seq2see.recipe.schema import TrainConfig
from seq2see.training import checkpoint
from seq2see.training.budget import Budget
from seq2see.training.interrupt import Stop
from seq2see.training.machine import product_type
from seq2see.training.optimizer import optimizer
from seq2see.training.position import Position
from seq2see.training.report import Reporter, Validation
from seq2see.training.schedule import learning_rate
from seq2see.training.update import BatchLoss, Gradients
from seq2see.training.validation import OnShare, validate
from seq2see.training.workers import one_thread

REMEDY = "a lower train.lr, longer train.warmup or train.clip may help"


@dataclass(frozen=True)
class Objective:
    """The examples of an epoch, the loss to minimise, and the validation of a run."""

    examples: Callable[[int], Examples]
    loss: BatchLoss
    validate: OnShare
    pass_tokens: float = math.inf  # most tokens of a forward pass on a CPU


class Training:
    """One run of the loop; `run()` returns the chosen weights."""

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        width: int,
        folder: Path,
        objective: Objective,
        reporter: Reporter,
        workers: int = 1,
        started: float | None = None,
    ) -> None:
        """Prepare a run whose command began at `started`, by `time.perf_counter()`."""
        self.model = model
        self.config = config
        self.width = width
        self.folder = folder
        self.objective = objective
        self.reporter = reporter
        self.device = next(model.parameters()).device
        self.optimizer = optimizer(model, config.optimizer, workers)
        dtype = product_type(config.precision, self.device)
        self.gradients = Gradients(model, objective.loss, workers, objective.pass_tokens, dtype)
        self.position = Position()
        self.ema: Tensors = {}
        if config.ema:
            self.ema = {name: weight.clone() for name, weight in weights(model).items()}
        self.started = time.perf_counter() if started is None else started
        self.budget = Budget(config, self.position, self.started)

    def resume(self, folder: Path) -> None:
        """Restore the state that a checkpoint saved."""
        saved = checkpoint.load(folder)
        try:
            copy_into(self.model, saved.groups["weights"], folder)
            checkpoint.copy_into_optimizer(self.model, self.optimizer, saved.groups["optimizer"])
            ema = saved.groups["ema"] if self.config.ema else {}
            self.position = Position(**saved.state)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{folder}: not a checkpoint that this version can resume: {error}"
            ) from None
        self.ema = {name: average.to(self.device) for name, average in ema.items()}
        self.budget = Budget(self.config, self.position, self.started)
        # A smaller share of a larger budget is spent.
        self.position.tenths = min(self.position.tenths, int(self.budget.progress() * 10))
        # Checkpoints that are gone, pruned or removed by hand, can be neither chosen nor averaged.
        there = {path.name for path in checkpoint.saved_in(folder.parent)}
        self.position.validations = {
            name: s for name, s in self.position.validations.items() if name in there
        }

    def run(self, starts_trained: bool = False) -> Tensors:
        """Train; weights that `starts_trained` says to be another model's are validated first."""
        self.budget.begin()
        if starts_trained:
            self._validate_start()
        self.reporter.mark(self.budget.seconds(), self.position.tokens)
        self.model.train()
        with Stop(self.reporter.say) as stop:
            while not self._finished():
                for examples, batches in self._updates_of_epoch():
                    self._update(examples, batches)
                    if self._checkpoint_due():
                        self._checkpoint_or_postpone()
                    if stop.asked:
                        self._save()  # not validated, so it can be resumed but not chosen
                        raise KeyboardInterrupt
                    if self._finished() and self.position.batch < self.position.epoch_batches:
                        break
                else:
                    self._end_epoch()
        self.budget.end(self.reporter.say)
        if self.position.name() not in self.position.validations:
            self._checkpoint()
        return self._choose()

    def _validate_start(self) -> None:
        """Note the score of the first weights, so that the end can tell whether the run gained."""
        result = self._validate({})
        if math.isfinite(result.loss):
            self.position.earlier = self._score(result)
            self.reporter.start(result)

    def _updates_of_epoch(self) -> Iterator[tuple[Examples, list[list[int]]]]:
        """Yield the rest of this epoch's examples in groups of `accumulate` batches of lines."""
        at = self.position
        examples = self.objective.examples(at.epoch)
        batches = epoch_batches(examples.lengths, self.config, at.epoch)
        at.epoch_batches = len(batches)
        self.budget.fit_warmup(self.reporter.say)
        for start in range(at.batch, len(batches), self.config.accumulate):
            yield examples, batches[start : start + self.config.accumulate]

    def _update(self, examples: Examples, batches: list[list[int]]) -> None:
        """Take one optimizer step on the gradient of the mean loss per target."""
        at = self.position
        total, tokens = self.gradients.fill(
            examples, batches, f"dropout/{self.config.seed}/{at.update}"
        )
        progress = self.budget.progress()
        rate = learning_rate(self.config, self.width, at.update + 1, progress, at.warmup)
        norm = nn.utils.clip_grad_norm_(
            self.model.parameters(), self.config.clip or math.inf
        ).item()
        if not math.isfinite(total) or not math.isfinite(norm):
            problem = f"the loss is {total / tokens:g} and the gradient norm {norm:g}"
            raise WorkError(
                f"update {at.update + 1}: {problem} at learning rate {rate:g}; "
                f"{self._last_good()}; {REMEDY}"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with one_thread():
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._average_exponentially()
        at.update += 1
        at.batch += len(batches)
        at.batches += len(batches)
        at.samples += sum(map(len, batches))
        at.tokens += tokens
        if self.config.minutes:
            self.budget.fit_warmup(self.reporter.say)
        self.reporter.update(
            progress=self.budget.progress(),
            seconds_left=self.budget.seconds_left(),
            update=at.update,
            epoch=at.epoch,
            loss=total / tokens,
            learning_rate=rate,
            gradient_norm=norm,
            tokens=at.tokens,
            seconds=self.budget.seconds(),
        )

    @torch.no_grad()
    def _average_exponentially(self) -> None:
        # A long memory would hold mostly initial weights early on, so it grows with the updates.
        decay = min(self.config.ema, (1 + self.position.update) / (10 + self.position.update))
        own = weights(self.model)
        for name, average in self.ema.items():
            average.lerp_(own[name], 1 - decay)

    def _end_epoch(self) -> None:
        at = self.position
        self.reporter.epoch(
            epoch=at.epoch,
            steps=at.batches,
            updates=at.update,
            samples=at.samples,
            tokens=at.tokens,
            seconds=self.budget.seconds(),
        )
        at.epoch += 1
        at.batch = 0
        if self.config.epochs and not self.config.checkpoint_every:
            self._checkpoint()

    def _checkpoint_or_postpone(self) -> None:
        """Validate and save; put off a validation that would take too much of the time."""
        if self.budget.validation_fits(self.reporter.say):
            self._checkpoint()
        elif self.config.checkpoint_every:
            self._save()
            self._prune()

    def _checkpoint(self) -> None:
        """Validate, then save; the score decides later which weights are kept."""
        at = self.position
        result = self._validate(self.ema)
        if not math.isfinite(result.loss):
            problem = f"update {at.update}: the validation loss is {result.loss:g}"
            raise WorkError(f"{problem}; {self._last_good()}; {REMEDY}")
        best = at.record(self._score(result))
        before = self.budget.progress()
        self.budget.reserve(result.scoring_seconds, result.examples, self.reporter.say)
        at.tenths = int(10 * max(before, self.budget.progress()))
        self._save()
        self._prune()
        seconds = self.budget.seconds()
        self.reporter.validation(
            result, update=at.update, epoch=at.epoch, best=best, seconds=seconds
        )
        self.reporter.mark(seconds, at.tokens)

    def _save(self) -> None:
        started = time.perf_counter()
        self.position.seconds = self.budget.seconds()
        groups = {
            "weights": weights(self.model),
            "optimizer": checkpoint.optimizer_tensors(self.model, self.optimizer),
        }
        if self.ema:
            groups["ema"] = self.ema
        checkpoint.save(
            self.folder / self.position.name(), checkpoint.Checkpoint(groups, asdict(self.position))
        )
        self.budget.saving_seconds = time.perf_counter() - started

    def _validate(self, shipped: Tensors) -> Validation:
        return validate(self.model, self.objective.validate, self.budget, shipped)

    def _choose(self) -> Tensors:
        """Return the best checkpoint, or the average of several if that validates better."""
        group = "ema" if self.ema else "weights"
        at = self.position
        kind = at.best()
        chosen = checkpoint.load(self.folder / kind).groups[group]
        kept = at.validations[kind]
        if self.config.average > 1 and len(at.validations) > 1:
            names = at.to_average(self.config)
            mean = checkpoint.average([self.folder / name for name in names], group)
            score = self._score(self._validate(mean))
            if at.best_since is not None:  # else nothing in the average is new
                at.best_since = max(score, at.best_since)
            if score > kept:
                chosen, kept = mean, score
                kind = f"the average of {', '.join(names)}"
        self.reporter.chosen(
            weights=kind,
            by=self.config.choose,
            score=abs(kept),
            updates=at.update,
            epochs=round(at.epochs, 3),
            tokens=at.tokens,
            seconds=self.budget.seconds(),
            validation_seconds=at.validation_seconds,
        )
        return chosen

    def _score(self, result: Validation) -> float:
        """The figure that chooses weights; higher is better."""
        if self.config.choose == "loss":
            return -result.loss
        return result.figures[self.config.choose]

    def _prune(self) -> None:
        """Keep the newest checkpoint to resume from, the best to choose, and those to average."""
        at = self.position
        checkpoint.keep(self.folder, {at.best(), at.name(), *at.to_average(self.config)})

    def _last_good(self) -> str:
        saved = checkpoint.saved_in(self.folder)
        if not saved:
            return "no checkpoint was written yet"
        return f"the last good checkpoint is {saved[-1]}"

    def _finished(self) -> bool:
        return self.budget.progress() >= 1 or self.position.stale(self.config)

    def _checkpoint_due(self) -> bool:
        if self.config.checkpoint_every:
            return self.position.update % self.config.checkpoint_every == 0
        return not self.config.epochs and int(self.budget.progress() * 10) > self.position.tenths
