"""The commands that train: demo, train."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from seq2see.cli.options import Data, Device, Set
from seq2see.errors import WorkError


def demo(
    out: Annotated[Path, typer.Option(help="The run directory.")] = Path("runs/demo"),
    minutes: Annotated[float | None, typer.Option(help="Training time.")] = None,
    device: Device = "auto",
) -> None:
    """Train on the embedded corpus, score it, translate, and draw its attention."""
    from seq2see.cli.demo import demo

    try:
        demo(out, minutes, device, Console(stderr=True, soft_wrap=True, emoji=False))
    except KeyboardInterrupt as interrupt:
        raise _stopped(interrupt, "to go on: the same command") from None


def train(
    recipe: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped recipe.")],
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="The run directory; by default runs/RECIPE.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Budget in place of the recipe's: train.minutes, all parts together."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the run in --out; a finished one if the budget, a total, is larger now. "
            "The corpus may have grown.",
        ),
    ] = False,
    init: Annotated[
        Path | None,
        typer.Option(
            help="Start from the weights of this model directory that fit; "
            "what it was trained on is not held out.",
        ),
    ] = None,
    overrides: Set = None,
    device: Device = "auto",
) -> None:
    """Train the model of a recipe, and score it.

    Ctrl-C saves a checkpoint, and --resume continues. The model can be used at any time: until the
    end it is the best checkpoint, or that of before if a finished run is extended.
    """
    from seq2see.tasks.run import train

    settings = list(overrides or [])
    if minutes is not None:
        settings.append(f"train.minutes={minutes}")
    try:
        train(
            recipe,
            data=data,
            out=out,
            overrides=settings,
            resume=resume,
            init=init,
            device=device,
        )
    except KeyboardInterrupt as interrupt:
        raise _stopped(interrupt, "to go on: the same command with --resume") from None


def _stopped(interrupt: KeyboardInterrupt, how: str) -> WorkError:
    """Say where a training is that was interrupted, and how to continue."""
    return WorkError(f"{interrupt}; {how}" if interrupt.args else "stopped")
