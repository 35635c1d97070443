"""Progress of a run: a bar, `log.jsonl`, and TensorBoard where it is installed."""

import importlib.util
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from seq2see.batches import spread
from seq2see.files import write_atomically
from seq2see.training.budget import clock
from seq2see.training.machine import Load

SAMPLES_SHOWN = 3
BAR_COLUMNS = 8  # at least, with the spinner and the spaces between
DROPPED_FIRST = ("lr", "epoch", "update", "speed")  # from the bar on a narrow terminal
SECONDS_BETWEEN_LINES = 10.0  # where no terminal shows the bar


@dataclass(frozen=True)
class Validation:
    """Results on the validation set."""

    loss: float  # the training criterion, per target; lower is better
    figures: dict[str, float]  # the task's own; of those that may choose weights, higher is better
    summary: str  # the figures in words
    samples: list[tuple[str, str, str]]  # source, reference, output
    examples: str = ""  # that were validated, in words
    share: float = 1.0  # of a whole validation that this was, which may be more than was asked for
    scoring_seconds: float = 0.0  # expected for the test sets
    sheet: bytes | None = None  # samples that are pictures, as PNG


def _remove_torn_line(log: Path) -> None:
    """Cut off the line that a killed process has not finished, so that every line is an event."""
    if not log.exists():
        return
    with log.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


class Reporter:
    """Shows and logs the progress of a run."""

    def __init__(
        self,
        folder: Path,
        console: Console,
        unit: str = "target tokens",
        writes: bool = True,
        pids: Sequence[int] = (),
    ) -> None:
        """Open the log of a run; a process that never `writes` says and logs nothing.

        The load on the machine is that of all processes but those of the run, `pids`.
        """
        self.console = console if writes else Console(quiet=True)
        self.unit = unit
        self.sheets = folder / "samples"
        if writes:
            folder.mkdir(parents=True, exist_ok=True)
            _remove_torn_line(folder / "log.jsonl")
        log = folder / "log.jsonl" if writes else Path(os.devnull)
        self.log = log.open("a", encoding="utf-8")
        self.board = None
        if writes and importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(folder / "events"))
        self.bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not writes or not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=1.0)
        self.process = psutil.Process()
        self.process.cpu_percent()
        self.load = Load(torch.get_num_threads() * max(1, len(pids)), pids)
        self.shown = self.logged = 0.0
        self.window: list[tuple[float, int]] = []  # seconds and tokens at the last updates

    def __enter__(self) -> "Reporter":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
        self.log.close()
        if self.board is not None:
            self.board.close()

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self.console.print(text, highlight=False)

    def write(self, event: str, **values: Any) -> None:
        """Append one line to log.jsonl, and its numbers to TensorBoard."""
        self.log.write(json.dumps({"event": event, **values}, ensure_ascii=False) + "\n")
        self.log.flush()
        update = values.get("update", values.get("updates"))
        if self.board is not None and update is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self.board.add_scalar(f"{event}/{name}", value, update)

    def mark(self, seconds: float, tokens: int) -> None:
        """Measure the speed anew: the time before was not spent on training."""
        self.window = [(seconds, tokens)]

    def update(
        self,
        *,
        progress: float,
        seconds_left: float,
        update: int,
        epoch: int,
        loss: float,
        learning_rate: float,
        gradient_norm: float,
        tokens: int,
        seconds: float,
        speeds: Sequence[float] = (),
    ) -> None:
        now = time.monotonic()
        self.window = [*self.window, (seconds, tokens)][-20:]
        first_seconds, first_tokens = self.window[0]
        speed = (tokens - first_tokens) / max(seconds - first_seconds, 1e-6)
        parts = {
            "epoch": f"epoch {epoch}",
            "update": f"update {update}",
            "loss": f"loss {loss:.3f}",
            "speed": f"{speed:,.0f} {self.unit}/s",
            "lr": f"lr {learning_rate:.2e}",
            "left": f"{clock(seconds_left)} left",
        }
        text = fitting(parts, self.console.width - BAR_COLUMNS)
        self.bar.update(self.task, completed=min(progress, 1.0), description=text)
        if change := self.load.check():
            self.say(change)
        if not self.console.is_terminal and now - self.shown >= SECONDS_BETWEEN_LINES:
            self.shown = now
            self.say(f"{progress:4.0%} · {' · '.join(parts.values())}")
        if now - self.logged >= 1 or update == 1:
            self.logged = now
            # While it computes: a process that is slower than the others keeps all of them waiting.
            by_rank = {"rank_tokens_per_second": list(speeds)} if len(speeds) > 1 else {}
            self.write(
                "update",
                update=update,
                epoch=epoch,
                loss=loss,
                learning_rate=learning_rate,
                gradient_norm=gradient_norm,
                tokens=tokens,
                tokens_per_second=speed,
                others_cores=self.load.others,
                seconds=seconds,
                **by_rank,
            )

    def epoch(
        self, *, epoch: int, steps: int, updates: int, samples: int, tokens: int, seconds: float
    ) -> None:
        usage: dict[str, float] = {
            "memory_mb": self.process.memory_info().rss / 2**20,
            "processor_percent": self.process.cpu_percent() / (os.cpu_count() or 1),
        }
        if torch.cuda.is_available():
            usage["gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
        self.write(
            "epoch",
            epoch=epoch,
            steps=steps,
            updates=updates,
            samples=samples,
            tokens=tokens,
            seconds=seconds,
            others_cores=self.load.others,
            **usage,
        )
        used = " · ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in usage.items())
        done = f"{steps:,} batches · {updates:,} updates · {samples:,} samples · {tokens:,} tokens"
        self.say(f"[dim]epoch {epoch} done · {done} · {clock(seconds)} · {used}[/dim]")

    def start(self, result: Validation) -> None:
        """Report the validation of weights that another model was trained to."""
        self.write("start", loss=result.loss, **result.figures)
        self.say(f"[bold]validation[/bold] before the first update · {_figures(result)}")

    def validation(
        self, result: Validation, *, update: int, epoch: int, best: bool, seconds: float
    ) -> None:
        self.write(
            "validation",
            update=update,
            epoch=epoch,
            loss=result.loss,
            **result.figures,
            best=best,
            seconds=seconds,
            samples=result.samples,
        )
        self.say(
            f"[bold]validation[/bold] at update {update:,} · {clock(seconds)} · {_figures(result)}"
            f"{' · best so far' if best else ''}"
        )
        if result.sheet is not None:
            self._show_sheet(result.sheet, update)
        for shown in spread(len(result.samples), SAMPLES_SHOWN):
            source, reference, output = result.samples[shown]
            self.say(f"  source     {escape(source)}")
            self.say(f"  reference  {escape(reference)}")
            self.say(f"  [cyan]output     {escape(output)}[/cyan]\n")

    def _show_sheet(self, sheet: bytes, update: int) -> None:
        self.sheets.mkdir(exist_ok=True)
        path = self.sheets / f"update-{update:08d}.png"
        write_atomically(path, lambda file: file.write_bytes(sheet))
        self.say(f"  pictures   {escape(str(path))}")

    def chosen(
        self,
        *,
        weights: str,
        by: str,
        score: float,
        updates: int,
        epochs: float,
        tokens: int,
        seconds: float,
        validation_seconds: float,
    ) -> None:
        self.write(
            "chosen",
            weights=weights,
            by=by,
            score=score,
            updates=updates,
            epochs=epochs,
            tokens=tokens,
            seconds=seconds,
            validation_seconds=validation_seconds,
        )
        self.say(f"kept {weights} (validation {by} {score:.3f}) after {clock(seconds)}")


def _figures(result: Validation) -> str:
    return " · ".join(filter(None, [f"loss {result.loss:.3f}", result.summary]))


def fitting(parts: dict[str, str], width: int) -> str:
    """Join the parts of a line, without the least important ones where it would be too wide."""
    kept = dict(parts)
    for name in DROPPED_FIRST:
        if len(" · ".join(kept.values())) <= width:
            break
        del kept[name]
    return " · ".join(kept.values())
