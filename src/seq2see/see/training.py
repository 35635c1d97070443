"""Curves of training runs, read from their logs: loss, validation, learning rate and speed."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seq2see.errors import InputError
from seq2see.see.figures import CURVES, label
from seq2see.see.tables import table

Event = dict[str, Any]
UNITS = {"updates": "update", "minutes": "minutes", "tokens": "million tokens"}
NAMES = {"bleu": "BLEU", "accuracy": "accuracy, %"}
# Perplexity is e to the power of the loss, and shows nothing more.
NOT_SCORES = {"event", "update", "epoch", "loss", "perplexity", "best", "seconds", "samples"}
LARGEST_LOG = 200_000_000  # bytes
MOST_RUNS = len(CURVES)


@dataclass(frozen=True)
class Run:
    """The updates and the validations of a run, in the order of training."""

    name: str
    updates: list[Event]
    validations: list[Event]

    @property
    def scores(self) -> list[str]:
        """Names of the scores that every validation gives besides the loss."""
        numbers = [
            {key for key, value in event.items() if isinstance(value, int | float)}
            for event in self.validations
        ]
        shared = set.intersection(*numbers) if numbers else set()
        return sorted(shared - NOT_SCORES)

    def along(self, events: Sequence[Event], unit: str) -> list[float]:
        """Place events on an axis of updates, minutes or tokens."""
        if unit == "updates":
            return [event["update"] for event in events]
        if unit == "minutes":
            return [event["seconds"] / 60 for event in events]
        tokens = [(event["update"], event["tokens"]) for event in self.updates]
        return [_read_until(tokens, event["update"]) / 1e6 for event in events]


def _read_until(tokens: Sequence[tuple[int, int]], update: int) -> int:
    """Number of tokens at the last logged update that is not after this one."""
    return max((count for at, count in tokens if at <= update), default=0)


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read the logs of runs, named by their folders, and by more of the path where these agree."""
    runs = [read(folder) for folder in folders]
    names = [run.name for run in runs]
    if len({*names}) == len(names):
        return runs
    return [replace(run, name=str(folder)) for run, folder in zip(runs, folders, strict=True)]


def read(folder: Path) -> Run:
    """Read the log of a run; what a resumed run did again counts once."""
    path = folder / "log.jsonl"
    try:
        if path.stat().st_size > LARGEST_LOG:
            raise InputError(f"{path}: larger than {LARGEST_LOG:,} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{path}: cannot read the log of a run: {reason}") from None
    lines = text.splitlines()
    complete = text.endswith("\n")
    by_kind: dict[str, dict[int, Event]] = {"update": {}, "validation": {}}
    for number, line in enumerate(lines, start=1):
        if number == len(lines) and not complete:
            break  # the run is writing it, or was killed
        event = _event(path, number, line)
        if event["event"] in by_kind:
            # A resumed run does again what came after its checkpoint.
            for kind in ("update", "validation") if event["event"] == "update" else ("validation",):
                _rewind(by_kind[kind], event["update"])
            by_kind[event["event"]][event["update"]] = event
    updates, validations = (list(events.values()) for events in by_kind.values())
    if not updates:
        raise InputError(f"{path}: has no update yet")
    return Run(folder.resolve().name, updates, validations)


def _rewind(events: dict[int, Event], update: int) -> None:
    """Remove the events from this update on."""
    while events and next(reversed(events)) >= update:
        events.popitem()


NEEDED = {
    "update": ("update", "loss", "learning_rate", "tokens_per_second", "tokens", "seconds"),
    "validation": ("update", "loss", "seconds"),
}


def _event(path: Path, number: int, line: str) -> Event:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        raise InputError(f"{path}: line {number} is not JSON") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise InputError(f"{path}: line {number} is not an event")
    for key in NEEDED.get(event["event"], ()):
        if not isinstance(event.get(key), int | float):
            raise InputError(f"{path}: line {number} has no number {key!r}")
    return event


def report(runs: Sequence[Run]) -> list[str]:
    """Tabulate the length, the best validation and the speed of each run."""
    names = _common_scores(runs)
    heads = ["run", "updates", "minutes", "best loss", *(f"best {_name(name)}" for name in names)]
    rows = [[*heads, "tokens/s"]]
    for run in runs:
        last = run.updates[-1]
        losses = [event["loss"] for event in run.validations]
        cells = [run.name, f"{last['update']:,}", f"{last['seconds'] / 60:.1f}"]
        cells.append(f"{min(losses):.3f}" if losses else "")
        cells += [f"{max(event[name] for event in run.validations):.2f}" for name in names]
        speed = statistics.median(event["tokens_per_second"] for event in run.updates)
        rows.append([*cells, f"{speed:,.0f}"])
    return table(rows)


def _common_scores(runs: Sequence[Run]) -> list[str]:
    """Names of the scores that every run was validated by."""
    first, *others = runs
    return [name for name in first.scores if all(name in run.scores for run in others)]


def _name(score: str) -> str:
    return NAMES.get(score, score.replace("_", " "))


def draw(runs: Sequence[Run], unit: str) -> Figure:
    """Draw loss, a score of the validations, learning rate and speed, a curve per run."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, 2)
    scores = _common_scores(runs)[:1]
    for i, run in enumerate(runs):
        colour, mark = CURVES[i]
        name = run.name.lstrip("_") or "run"  # _ would keep it out of Matplotlib's legend
        steps = run.along(run.updates, unit)
        checks = run.along(run.validations, unit)
        loss, score, rate, speed = panels.flat
        _curve(loss, steps, run.updates, "loss", (colour, f"{name}, training"), alpha=0.45)
        validated = (colour, f"{name}, validation")
        _curve(loss, checks, run.validations, "loss", validated, mark=mark)
        for key in scores:
            _curve(score, checks, run.validations, key, (colour, name), mark=mark)
        _curve(rate, steps, run.updates, "learning_rate", (colour, name))
        _curve(speed, steps, run.updates, "tokens_per_second", (colour, name))
    _label(panels, scores, UNITS[unit])
    return figure


def _curve(
    axes: Axes,
    x: Sequence[float],
    events: Sequence[Event],
    key: str,
    style: tuple[str, str],
    mark: str = "",
    alpha: float = 1.0,
) -> None:
    colour, name = style
    y = [event[key] for event in events]
    axes.plot(x, y, f"-{mark}", color=colour, alpha=alpha, linewidth=1.4, markersize=4, label=name)


def _label(panels: Any, scores: Sequence[str], unit: str) -> None:
    (loss, score), (rate, speed) = panels
    label(loss, "Loss", unit, "loss per target")
    for name in scores:
        label(score, "Validation", unit, _name(name))
    if not scores:
        score.set_axis_off()
    label(rate, "Learning rate", unit, "learning rate")
    label(speed, "Speed", unit, "tokens per second")
    for axes in (score, speed):
        axes.set_ylim(bottom=0)
    for axes in (rate, speed):
        axes.get_legend().remove()
