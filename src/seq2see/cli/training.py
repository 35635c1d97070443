"""The commands that train: demo, train."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from seq2see.cli.options import Data, Device, RecipeName, Set
from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe

Minutes = Annotated[
    float | None,
    typer.Option(
        help="Time for the whole run, from reading to scoring, instead of the recipe's budget."
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the run in --out, also on a corpus that has grown; extend a finished run to "
        "a larger total budget.",
    ),
]
Init = Annotated[
    Path | None,
    typer.Option(
        help="Start from the weights of this model directory that fit; sentences it was trained on "
        "are not held out.",
    ),
]


DEMOS = {"de-en": "captions", "zh-en": "captions-zh-en"}  # recipe by languages


def demo(
    languages: Annotated[
        str, typer.Option(help="Languages of the captions: de-en or zh-en.", metavar="PAIR")
    ] = "de-en",
    out: Annotated[Path, typer.Option(help="The run directory.")] = Path("runs/demo"),
    minutes: Annotated[
        float | None,
        typer.Option(help="Time to train and score; by default 3, or 4 from Chinese."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Train on the embedded corpus, score, translate and draw."""
    if languages not in DEMOS:
        raise InputError(f"--languages {languages}: must be {' or '.join(DEMOS)}")
    recipe = DEMOS[languages]
    _announce(recipe, out)
    from seq2see.cli.demo import demo

    try:
        demo(recipe, out, minutes, device, Console(stderr=True, soft_wrap=True, emoji=False))
    except KeyboardInterrupt as interrupt:
        raise _stopped(interrupt, "to continue: the same command") from None


def train(
    recipe: RecipeName,
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="The run directory; by default runs/RECIPE.")
    ] = None,
    minutes: Minutes = None,
    resume: Resume = False,
    init: Init = None,
    overrides: Set = None,
    device: Device = "auto",
) -> None:
    """Train the model of a recipe, and score it.

    Ctrl-C saves a checkpoint, and --resume continues from it. The model can be used at any time:
    until the run ends, it is the best checkpoint or, while a finished run is extended, the previous
    model. torchrun --nproc-per-node N -m seq2see train … trains with N processes.
    """
    settings = list(overrides or [])
    if minutes is not None:
        settings.append(f"train.minutes={minutes}")
    out = out or Path("runs") / Path(recipe).stem
    rank = os.environ.get("RANK")  # set by torchrun
    if rank is None:
        Recipe.load(recipe, settings)  # a mistake in the recipe needs no announcement
    speaks = rank in (None, "0")
    if speaks:
        _announce(recipe, out)
    from seq2see.tasks.run import train
    from seq2see.tasks.run_directory import holds_run

    if resume and speaks and not holds_run(out):
        print(f"{out} holds no run yet: starting one …", file=sys.stderr)
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
        raise _stopped(interrupt, "to continue: the same command with --resume") from None


def _announce(recipe: str, out: Path) -> None:
    """Say what will be done, before the import of torch, which takes seconds."""
    print(f"training {recipe} into {out} …", file=sys.stderr, flush=True)


def _stopped(interrupt: KeyboardInterrupt, how: str) -> typer.Exit:
    """Print the state of an interrupted run and how to continue it; return the end of the command.

    This is no mistake of the user, so it may take several lines.
    """
    lines = [str(interrupt), how] if interrupt.args else ["stopped"]
    print("seq2see:", "\n".join(lines), file=sys.stderr)
    return typer.Exit(1)
