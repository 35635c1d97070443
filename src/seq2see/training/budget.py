"""The budget of a run: the share that is spent, and the time for validation and for finishing."""

import math
import time
from collections.abc import Callable

from seq2see.recipe.schema import TrainConfig
from seq2see.training.position import Position

# Shares of a budget in minutes:
VALIDATION_SHARE = 0.12  # for all validations, the last ones excepted
ONE_VALIDATION = 0.01  # ten of them a run, and one of the averaged weights
SHARE_OF_TIME = f"at most {VALIDATION_SHARE:.0%} of the time"
WARMUP_SHARE = 0.2  # for a warm-up that would not end before the run
KNOWN_PACE = 0.02  # after which the number of updates can be estimated

MARGIN = 1.2  # the machine may be busier at the end than it was before
OPENING_SECONDS = 1.0  # to write the chosen weights and open them again
# A run that ends later than the smaller of these is reported.
LATE_SECONDS = 10.0
LATE_SHARE = 0.1

MEASURED = ("validation_seconds", "validated_at", "saving_seconds", "scoring_seconds", "postponed")

Say = Callable[[str], None]


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03, or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Budget:
    """The budget of a run in steps, epochs or minutes, and the time since its command began."""

    def __init__(self, config: TrainConfig, position: Position, started: float) -> None:
        self.config = config
        self.position = position
        self.started = started  # by time.perf_counter()
        self.seconds_before = position.seconds  # of earlier processes
        self.total = 60 * (config.minutes or math.inf)
        self.validation_seconds = 0.0  # of the last validation
        self.validated_at = 0.0  # the progress then
        self.saving_seconds = 0.0  # of the last checkpoint
        self.scoring_seconds = 0.0  # expected for the test sets
        self.postponed = False  # whether a validation was
        self.agreed: float | None = None  # seconds by the clock of rank 0, which all processes use

    def begin(self) -> None:
        """Note that preparation has ended."""
        self.position.preparation_seconds += time.perf_counter() - self.started

    def seconds(self) -> float:
        """Seconds since the command began; those of earlier processes count."""
        return self.read() if self.agreed is None else self.agreed

    def read(self) -> float:
        """Seconds by the clock of this process."""
        return self.seconds_before + time.perf_counter() - self.started

    def measured(self) -> dict[str, float]:
        """The times that decide how a run goes on, for processes without a clock of their own."""
        return {name: getattr(self, name) for name in MEASURED} | {"agreed": self.read()}

    def progress(self) -> float:
        """Share of the budget that is spent; of one in minutes, the part for training counts."""
        at, config = self.position, self.config
        if config.steps:
            return at.update / config.steps
        if config.epochs:
            return at.epochs / config.epochs
        if not at.update:
            return 0.0  # there is time for one update, however small the budget
        seconds = self.seconds()
        spent = seconds - at.preparation_seconds
        one_update = (spent - at.validation_seconds) / at.update
        left = self.total - self._reserved() - seconds - one_update
        return spent / (spent + max(left, 0.0))

    def seconds_left(self) -> float:
        """Expected seconds until the score card is written."""
        at = self.position
        if self.config.minutes:
            return max(self.total - self.seconds(), 0.0)
        progress = self.progress()
        training = self.seconds() - at.preparation_seconds - at.validation_seconds
        validated = self.validated_at or progress
        rest = training / progress * (1 - progress)
        rest += at.validation_seconds / validated * (1 - validated)
        return max(rest, 0.0) + self.scoring_seconds

    def updates(self) -> float | None:
        """Estimate the updates of the whole run; None until the pace is known."""
        at, config = self.position, self.config
        if config.steps:
            return config.steps
        if config.epochs:
            return config.epochs * math.ceil(at.epoch_batches / config.accumulate)
        progress = self.progress()
        return at.update / progress if at.update > 2 and progress > KNOWN_PACE else None

    def fit_warmup(self, say: Say) -> None:
        """Shorten a warm-up that would not end before the run, and say so."""
        at, config = self.position, self.config
        warmup = at.warmup or config.warmup
        # With steps or epochs, the decision must not depend on where a run was resumed.
        undecided = at.update < warmup if config.minutes else at.update == 0
        updates = self.updates() if undecided else None
        if updates is None or updates >= warmup:
            return
        at.warmup = max(round(WARMUP_SHARE * updates), at.update + 1)
        length = f"{'about ' if config.minutes else ''}{updates:,.0f} updates"
        say(
            f"train.warmup = {config.warmup} is longer than the run of {length}; "
            f"the learning rate rises for {at.warmup} updates instead"
        )

    def validation_fits(self, say: Say) -> bool:
        """Whether validating now keeps to its share of a budget in minutes; say if it does not."""
        spent = self.position.validation_seconds + self.validation_seconds
        fits = not self.config.minutes or spent <= VALIDATION_SHARE * self.seconds()
        if not fits and not self.postponed:
            say(f"validating less often, so that it takes {SHARE_OF_TIME}")
            self.postponed = True
        return fits

    def reserve(self, scoring_seconds: float, examples: str, say: Say) -> None:
        """Reserve time to finish, as measured in a validation; after the first one, say how much.

        Scoring the test sets is expected to take `scoring_seconds`; `examples` were validated.
        """
        at = self.position
        first = not at.finish_seconds
        self.scoring_seconds = scoring_seconds
        validations = 2 if self.config.average > 1 else 1
        seconds = validations * (self.validation_seconds + self.saving_seconds) + scoring_seconds
        expected = MARGIN * seconds + OPENING_SECONDS
        at.finish_seconds = expected if first else (at.finish_seconds + expected) / 2
        self.validated_at = self.progress()
        if first and self.config.minutes:
            if at.validation_share < 1:
                say(f"validation on {examples}, so that it takes {SHARE_OF_TIME}")
            reserved = f"{clock(self._reserved())} of {clock(self.total)} are reserved"
            average = ", that of the average" if validations == 2 else ""
            say(f"{reserved} for the last validation{average} and the test sets")

    def _reserved(self) -> float:
        # The measurements of a young model may be far too high; training gets half in any case.
        at = self.position
        return min(at.finish_seconds, max(self.total - at.preparation_seconds, 0.0) / 2)

    def end(self, say: Say) -> None:
        """Note the end of training; say so if the budget was too small for the rest."""
        at, minutes = self.position, self.config.minutes
        late = self.seconds() + at.finish_seconds - self.total
        if minutes and late > min(LATE_SECONDS, LATE_SHARE * self.total):
            prepared = f"preparation took {clock(at.preparation_seconds)}"
            rest = f"validation and test sets take about {clock(at.finish_seconds)} more"
            say(f"train.minutes = {minutes:g} is too small: {prepared}, and {rest}")
