"""Learning-rate curves, by width and warm-up as in the paper (section 5.3), or of recipes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seq2see.recipe.schema import Recipe, TrainConfig
from seq2see.see.figures import CURVES, label
from seq2see.see.tables import table
from seq2see.training.budget import WARMUP_SHARE
from seq2see.training.schedule import learning_rate

WIDTHS, WARMUPS = (512, 256, 1024), (4000, 3000, 8000)  # the paper's base model first
POINTS = 400  # of a curve
UPDATES = 20_000  # of a run whose budget is not in updates
EARLY = 2  # an update of the report, at which the rate is still small


@dataclass(frozen=True)
class Curve:
    """The learning rate of each update of one run."""

    name: str
    config: TrainConfig
    width: int
    updates: int  # of the whole run
    warmup: int

    def rate(self, update: int) -> float:
        """Learning rate of an update, as training computes it."""
        progress = (update - 1) / self.updates
        return learning_rate(self.config, self.width, update, progress, self.warmup)

    @property
    def peak(self) -> int:
        """The update with the highest rate."""
        return min(self.warmup, self.updates)

    def points(self) -> tuple[list[int], list[float]]:
        """Updates spread over the run, the peak among them, and their rates."""
        spread = np.linspace(1, self.updates, POINTS).round().astype(int)
        updates = sorted({*spread.tolist(), self.peak})
        return updates, [self.rate(update) for update in updates]


def paper(width: int, warmup: int, updates: int) -> Curve:
    """Curve of the paper's schedule, whose peak follows from width and warm-up."""
    config = TrainConfig(steps=updates, schedule="inverse_sqrt", warmup=warmup)
    return Curve(f"d = {width}, warm-up {warmup:,}", config, width, updates, warmup)


def of_recipe(name: str, recipe: Recipe, updates: int | None) -> Curve:
    """Curve of a recipe; a warm-up longer than the run is shortened, as training does."""
    length = updates or recipe.train.steps or UPDATES
    warmup = recipe.train.warmup
    if warmup > length:
        warmup = max(round(WARMUP_SHARE * length), 1)
    return Curve(f"{name}, {length:,} updates", recipe.train, recipe.model.width, length, warmup)


def by_width_and_warmup(
    widths: Sequence[int], warmups: Sequence[int], updates: int
) -> tuple[list[Curve], list[Curve]]:
    """Curves of all widths with the first warm-up, and of all warm-ups with the first width."""
    by_width = [paper(width, warmups[0], updates) for width in widths]
    by_warmup = [paper(widths[0], warmup, updates) for warmup in warmups]
    return by_width, by_warmup


def report(curves: Sequence[Curve]) -> list[str]:
    """Tabulate the rate of an early update, of the peak and of the last update."""
    rows = [["", f"update {EARLY}", "peak", "at update", "last update"]]
    for curve in {curve.name: curve for curve in curves}.values():
        rates = [curve.rate(update) for update in (EARLY, curve.peak, curve.updates)]
        early, peak, last = (f"{rate:.1e}" for rate in rates)
        rows.append([curve.name, early, peak, f"{curve.peak:,}", last])
    return table(rows)


def draw(groups: Sequence[tuple[str, Sequence[Curve]]]) -> Figure:
    """Draw groups of curves, a panel with a title for each."""
    figure = Figure(figsize=(4.6 * len(groups) + 1, 3.8), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axes, (title, curves) in zip(panels, groups, strict=True):
        _panel(axes, title, curves)
    return figure


def _panel(axes: Axes, title: str, curves: Sequence[Curve]) -> None:
    for i, curve in enumerate(curves):
        colour, mark = CURVES[i % len(CURVES)]
        updates, rates = curve.points()
        peak = [updates.index(curve.peak)]
        axes.plot(
            updates,
            rates,
            f"-{mark}",
            color=colour,
            markevery=peak,
            linewidth=1.6,
            label=curve.name,
        )
    label(axes, title, "update", "learning rate")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_tick_params(labelleft=True)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    axes.yaxis.get_offset_text().set_fontsize(7)
