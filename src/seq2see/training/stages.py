"""Stages of a command before and after training, such as reading and scoring."""

import time

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from seq2see.training.budget import clock

SECONDS_BEFORE_SHARE = 2.0  # where no terminal shows the spinner
SECONDS_BETWEEN_SHARES = 10.0
MARGIN = 12  # columns beside the text: a spinner and the time


class Stages:
    """Shows the current stage: on a terminal a spinner with the elapsed time, elsewhere a line.

    The command's time counts from the creation of this object; the spinner turns inside `with`.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.started = time.perf_counter()
        self.text = ""
        self.next_line = 0.0
        self.began = (0.0, 0.0)  # time and share at the start of the stage
        self.spinner: Progress | None = None

    def __enter__(self) -> "Stages":
        if self.console.is_terminal:
            self.spinner = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.spinner.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.spinner is not None:
            self.spinner.stop()
        self.spinner = None
        self.text = ""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Name the current stage and, if known, the share of it that is done."""
        new = text != self.text
        self.text = text
        if new:
            self.began = time.monotonic(), share or 0.0
        shown = text if share is None else f"{text} {share:.0%}{self._left(share)}"
        if self.spinner is not None:
            self._spin(self.spinner, new, shown)
        elif not self.console.is_terminal:
            self._print(new, shown, share)

    def _left(self, share: float) -> str:
        """The time that the rest of the stage will take, once there is a speed."""
        began, first = self.began
        seconds = time.monotonic() - began
        if share <= first or seconds < SECONDS_BEFORE_SHARE:
            return ""
        return f" · {clock(round(seconds * (1 - share) / (share - first)))} left"

    def _spin(self, spinner: Progress, new: bool, text: str) -> None:
        room = self.console.width - MARGIN
        if len(text) > room:
            text = f"{text[: room - 1]}…"
        if new:
            for task in spinner.task_ids:
                spinner.remove_task(task)
            spinner.add_task(text, total=None)
        else:
            spinner.update(spinner.task_ids[0], description=text)

    def _print(self, new: bool, text: str, share: float | None) -> None:
        now = time.monotonic()
        if share is None:
            if new:
                self.console.print(f"{text} …", highlight=False, markup=False)
        elif new:
            self.next_line = now + SECONDS_BEFORE_SHARE  # it may be over by then
        elif now >= self.next_line:
            self.next_line = now + SECONDS_BETWEEN_SHARES
            self.console.print(f"{text} …", highlight=False, markup=False)
