"""What a run shows while it goes on: a progress bar, `log.jsonl`, TensorBoard where it is installed."""

import importlib.util
import json
import os
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

SAMPLES_SHOWN = 3
SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal to draw a bar on


class Reporter:
    """Shows and logs; knows nothing of models."""

    def __init__(self, folder: Path, console: Console, unit: str = "target tokens") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.console, self.unit = console, unit
        self.log = (folder / "log.jsonl").open("a", encoding="utf-8")
        self.board = None
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(folder / "events"))
        self.bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=1.0)
        self.process = psutil.Process()
        self.process.cpu_percent()
        self.shown = self.logged = 0.0
        self.window: list[tuple[float, int]] = []

    def __enter__(self) -> "Reporter":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
        self.log.close()
        if self.board is not None:
            self.board.close()

    def say(self, text: str) -> None:
        """One line for the reader, above the bar."""
        self.console.print(text, highlight=False)

    def write(self, event: str, **values: Any) -> None:
        """One line of log.jsonl, and its numbers to TensorBoard."""
        self.log.write(json.dumps({"event": event, **values}, ensure_ascii=False) + "\n")
        self.log.flush()
        update = values.get("update", values.get("updates"))
        if self.board is not None and update is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self.board.add_scalar(f"{event}/{name}", value, update)

    def update(
        self,
        *,
        progress: float,
        update: int,
        epoch: int,
        loss: float,
        learning_rate: float,
        gradient_norm: float,
        tokens: int,
        seconds: float,
    ) -> None:
        now = time.monotonic()
        self.window = [*self.window, (seconds, tokens)][-20:]
        (_first_seconds, first_tokens), span = self.window[0], seconds - self.window[0][0]
        speed = (tokens - first_tokens) / span if span else 0.0
        left = seconds / progress * (1 - progress) if progress else 0.0
        text = (
            f"epoch {epoch} · update {update} · loss {loss:.3f} · {speed:,.0f} {self.unit}/s · "
            f"lr {learning_rate:.2e} · {_clock(max(left, 0))} left"
        )
        self.bar.update(self.task, completed=min(progress, 1.0), description=text)
        if not self.console.is_terminal and now - self.shown >= SECONDS_BETWEEN_LINES:
            self.shown = now
            self.say(f"{progress:4.0%} · {text}")
        if now - self.logged >= 1 or update == 1:
            self.logged = now
            self.write(
                "update",
                update=update,
                epoch=epoch,
                loss=loss,
                learning_rate=learning_rate,
                gradient_norm=gradient_norm,
                tokens=tokens,
                tokens_per_second=speed,
                seconds=seconds,
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
            **usage,
        )
        used = " · ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in usage.items())
        self.say(
            f"[dim]epoch {epoch} done · {steps:,} batches · {updates:,} updates · {samples:,} samples · "
            f"{tokens:,} tokens · {_clock(seconds)} · {used}[/dim]"
        )

    def validation(
        self,
        *,
        update: int,
        epoch: int,
        loss: float,
        perplexity: float,
        bleu: float | None,
        accuracy: float | None,
        best: bool,
        seconds: float,
        samples: list[tuple[str, str, str]],
    ) -> None:
        self.write(
            "validation",
            update=update,
            epoch=epoch,
            loss=loss,
            perplexity=perplexity,
            bleu=bleu,
            accuracy=accuracy,
            best=best,
            seconds=seconds,
            samples=samples,
        )
        more = "" if bleu is None else f" · BLEU {bleu:.1f} (greedy)"
        more += "" if accuracy is None else f" · {accuracy:.2%} right"
        self.say(
            f"[bold]validation[/bold] at update {update:,} · {_clock(seconds)} · loss {loss:.3f} · "
            f"perplexity {perplexity:.2f}{more}{' · best so far' if best else ''}"
        )
        for source, reference, output in samples[:SAMPLES_SHOWN]:
            self.say(f"  source     {escape(source)}")
            self.say(f"  reference  {escape(reference)}")
            self.say(f"  [cyan]output     {escape(output)}[/cyan]\n")
        self.window.clear()  # the speed is that of training, not of looking

    def chosen(
        self,
        *,
        weights: str,
        by: str,
        score: float,
        updates: int,
        epochs: int,
        tokens: int,
        seconds: float,
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
        )
        self.say(f"kept {weights} (validation {by} {score:.3f}) after {_clock(seconds)}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
