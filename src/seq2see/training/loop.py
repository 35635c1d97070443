"""The training loop: from a fresh or resumed model to the weights that validation chose."""

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from torch import nn

from seq2see.batches import Examples
from seq2see.errors import WorkError
from seq2see.models.weights import Tensors
from seq2see.recipe.schema import TrainConfig
from seq2see.training import checkpoint
from seq2see.training.budget import Budget
from seq2see.training.choice import choose
from seq2see.training.distributed import ALONE, World
from seq2see.training.epochs import Epochs
from seq2see.training.interrupt import Stop
from seq2see.training.machine import product_type
from seq2see.training.report import Reporter, Validation
from seq2see.training.schedule import learning_rate
from seq2see.training.state import State
from seq2see.training.update import BatchLoss, Gradients
from seq2see.training.validation import OnShare, validate
from seq2see.training.workers import one_thread

REMEDY = "a lower train.lr, longer train.warmup or train.clip may help"


@dataclass(frozen=True)
class Objective:
    """The examples of each epoch, the loss to minimise, and the validation of a run."""

    epochs: Epochs
    loss: BatchLoss
    validate: OnShare
    pass_tokens: float = math.inf  # most tokens of a forward pass on a CPU


class Training:
    """One run of the loop; `run()` returns the chosen weights.

    All processes of a run go through it together: they take the same decisions, by numbers that
    they exchange after each update and by what rank 0, which validates and saves, tells them.
    """

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
        world: World = ALONE,
    ) -> None:
        """Prepare a run whose command began at `started`, by `time.perf_counter()`."""
        self.model = model
        self.config = config
        self.width = width
        self.folder = folder
        self.objective = objective
        self.reporter = reporter
        self.world = world
        self.shown = model  # the one to validate
        if config.shard == "full" and world.size > 1 and world.main:
            self.shown = copy.deepcopy(model)  # which rank 0 can use without the others
        dtype = product_type(config.precision, next(model.parameters()).device)
        self.gradients = Gradients(
            model, objective.loss, workers, objective.pass_tokens, dtype, world, config.shard
        )
        self.state = State(model, config, workers, world)
        self.optimizer = self.state.optimizer
        self.position = self.state.position
        self.started = time.perf_counter() if started is None else started
        self.budget = Budget(config, self.position, self.started)
        self.stopping = False  # on any rank

    def resume(self, folder: Path) -> None:
        """Restore the state that a checkpoint saved."""
        self.state.load(folder)
        self.budget = Budget(self.config, self.position, self.started)
        # A smaller share of a larger budget is spent.
        self.position.tenths = min(self.position.tenths, int(self.budget.progress() * 10))

    def run(self, starts_trained: bool = False) -> Tensors:
        """Train; weights that `starts_trained` says to be another model's are validated first."""
        self.budget.begin()
        if starts_trained:
            self._validate_start()
        self._follow()
        self.reporter.mark(self.budget.seconds(), self.position.tokens)
        self.model.train()
        with Stop(self.reporter.say, every=self.world.size > 1) as self.stop:
            while not self._finished():
                for examples, batches in self._updates_of_epoch():
                    self._update(examples, batches)
                    if self._checkpoint_due():
                        self._checkpoint_or_postpone()
                    if self.stopping:
                        self._save()  # not validated, so it can be resumed but not chosen
                        self._follow()
                        raise KeyboardInterrupt
                    if self._finished() and self.position.batch < self.position.epoch_batches:
                        break
                else:
                    self._end_epoch()
        self.budget.end(self.reporter.say)
        if self.position.name() not in self.position.validations:
            self._checkpoint()
        return self._choose() if self.world.main else {}  # which rank 0 writes

    def _follow(self) -> None:
        """Take over from rank 0 how far the run is, and the time."""
        if self.world.size == 1:
            return
        own = {"position": asdict(self.position), "budget": self.budget.measured()}
        told = self.world.share(own if self.world.main else None)
        self.position.adopt(told["position"])
        vars(self.budget).update(told["budget"])

    def _validate_start(self) -> None:
        """Note the score of the first weights, so that the end can tell whether the run gained."""
        result = self._validate(self.state.shipped())
        if result is not None and math.isfinite(result.loss):
            self.position.earlier = self._score(result)
            self.reporter.start(result)

    def _updates_of_epoch(self) -> Iterator[tuple[Examples, list[list[int]]]]:
        """Yield the rest of this epoch's examples in groups of `accumulate` batches of lines."""
        at = self.position
        examples, batches = self.objective.epochs(at.epoch)
        at.epoch_batches = len(batches)
        self.budget.fit_warmup(self.reporter.say)
        for start in range(at.batch, len(batches), self.config.accumulate):
            yield examples, batches[start : start + self.config.accumulate]

    def _update(self, examples: Examples, batches: list[list[int]]) -> None:
        """Take one optimizer step on the gradient of the mean loss per target."""
        at = self.position
        own_loss, tokens = self.gradients.fill(
            examples, batches, f"dropout/{self.config.seed}/{at.update}"
        )
        total, speeds = self._exchange(own_loss)
        progress = self.budget.progress()
        rate = learning_rate(self.config, self.width, at.update + 1, progress, at.warmup)
        norm = self.state.clip()
        if not math.isfinite(total) or not math.isfinite(norm):
            problem = f"the loss is {total / tokens:g} and the gradient norm {norm:g}"
            raise WorkError(
                f"update {at.update + 1}: {problem} at learning rate {rate:g}; "
                f"{checkpoint.last_good(self.folder)}; {REMEDY}"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with one_thread():
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.state.average_exponentially()
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
            speeds=speeds,
        )

    def _exchange(self, loss: float) -> tuple[float, list[float]]:
        """Share loss, time and whether to stop; return the loss and speeds of all processes."""
        speed = self.gradients.own_targets / max(self.gradients.engine.seconds, 1e-6)
        own = [loss, speed, self.stop.asked, self.budget.read()]
        losses, speeds, stops, clocks = zip(*self.world.gather(own), strict=True)
        self.stopping = any(stops)
        if self.world.size > 1:
            self.budget.agreed = clocks[0]
        return sum(losses), list(speeds)

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
            self._save_due()
            self._follow()

    def _checkpoint(self) -> None:
        """Validate, then save; the score decides later which weights are kept."""
        at = self.position
        result = self._validate(self.state.shipped())
        best = result is not None and self._record(result)
        self._save_due()
        if result is not None:
            seconds = self.budget.seconds()
            self.reporter.validation(
                result, update=at.update, epoch=at.epoch, best=best, seconds=seconds
            )
            self.reporter.mark(seconds, at.tokens)
        self._follow()

    def _record(self, result: Validation) -> bool:
        """Note the score of this update; return whether it is the best so far."""
        at = self.position
        if not math.isfinite(result.loss):
            problem = f"update {at.update}: the validation loss is {result.loss:g}"
            raise WorkError(f"{problem}; {checkpoint.last_good(self.folder)}; {REMEDY}")
        best = at.record(self._score(result))
        before = self.budget.progress()
        self.budget.reserve(result.scoring_seconds, result.examples, self.reporter.say)
        at.tenths = int(10 * max(before, self.budget.progress()))
        return best

    def _save_due(self) -> None:
        """Save a checkpoint, and remove those that are needed no more."""
        at = self.position
        at.note_due()
        self._save()
        if self.world.main:
            checkpoint.keep(self.folder, at.needed(self.config), at.to_show(self.config))

    def _save(self) -> None:
        started = time.perf_counter()
        self.position.seconds = self.budget.read()
        self.state.save(self.folder)
        self.budget.saving_seconds = time.perf_counter() - started

    def _validate(self, shipped: Tensors) -> Validation | None:
        """Validate on rank 0, by its own clock."""
        if not self.world.main:
            return None
        self.budget.agreed = None
        return validate(self.shown, self.objective.validate, self.budget, shipped)

    def _choose(self) -> Tensors:
        """Return the best checkpoint, or the average of several if that validates better."""
        at = self.position
        group = "ema" if self.state.ema else "weights"

        def score_of(average: Tensors) -> float:
            result = self._validate(average)
            assert result is not None  # on rank 0
            return self._score(result)

        chosen = choose(self.folder, group, self.config, at, score_of)
        self.reporter.chosen(
            weights=chosen.origin,
            by=self.config.choose,
            score=abs(chosen.score),
            updates=at.update,
            epochs=round(at.epochs, 3),
            tokens=at.tokens,
            seconds=self.budget.seconds(),
            validation_seconds=at.validation_seconds,
        )
        return chosen.weights

    def _score(self, result: Validation) -> float:
        """The figure that chooses weights; higher is better."""
        if self.config.choose == "loss":
            return -result.loss
        return result.figures[self.config.choose]

    def _finished(self) -> bool:
        return self.budget.progress() >= 1 or self.position.stale(self.config)

    def _checkpoint_due(self) -> bool:
        if self.config.checkpoint_every:
            return self.position.update % self.config.checkpoint_every == 0
        return not self.config.epochs and int(self.budget.progress() * 10) > self.position.tenths
