"""Command of diffusion models: paint."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2see.cli.options import Device, Json, Model, check_out, show
from seq2see.errors import InputError

if TYPE_CHECKING:
    from seq2see.tasks.painter import Painter

MOST_PROMPTS = 1000


Prompts = Annotated[
    list[str] | None,
    typer.Argument(metavar="PROMPT", help="By default read from stdin, one per line."),
]
Out = Annotated[Path, typer.Option(help="A .png file: one row of pictures per prompt.")]
Count = Annotated[int, typer.Option(min=1, max=1000, help="Pictures per prompt.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the first picture; the next count on from it.")]
Steps = Annotated[int | None, typer.Option(min=1, max=1000, help="From noise to a picture.")]
Guidance = Annotated[
    float | None,
    typer.Option(min=0.0, max=100.0, help="0: no prompt; 1: as trained; above: exaggerated."),
]
Sampler = Annotated[str | None, typer.Option(help="ddim, ddpm or euler.")]
Ratio = Annotated[
    float,
    typer.Option("--merge", min=0.0, max=0.75, help="Share of positions merged in self-attention."),
]
Scale = Annotated[int, typer.Option(min=1, max=64, help="Enlarge each pixel to a square.")]


def paint(
    model: Model,
    out: Out,
    prompts: Prompts = None,
    count: Count = 1,
    seed: Seed = 1,
    steps: Steps = None,
    guidance: Guidance = None,
    sampler: Sampler = None,
    merge: Ratio = 0.0,
    scale: Scale = 4,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Paint pictures from prompts with a diffusion model.

    For models of task = "diffusion". The same prompt and seed give the same picture. Steps,
    guidance and sampler are by default the recipe's.
    """
    from rich.console import Console

    from seq2see.models.merged import TokenMerging
    from seq2see.pictures.sheet import sheet
    from seq2see.tasks.table import load_painter
    from seq2see.training.stages import Stages

    if out.suffix.lower() != ".png":
        raise InputError(f"--out {out}: must end in .png")
    check_out(out)
    texts = _read(prompts)
    painter = load_painter(model, device)
    if merge:
        painter = painter.merged(TokenMerging(merge))
    warn_of_unknown_words(painter, texts)
    repeated = [text for text in texts for _ in range(count)]
    seeds = [*range(seed, seed + count)] * len(texts)
    settings = painter.settings(steps, guidance, sampler)
    started = time.perf_counter()
    with Stages(Console(stderr=True)) as stages:
        pictures = painter.paint(repeated, seeds, settings, lambda share: stages("painting", share))
    seconds = time.perf_counter() - started
    _write(out, sheet(pictures, count, scale))
    rows = [{"prompt": text, "seeds": seeds[:count]} for text in texts]
    values = {"out": str(out), "rows": rows, "pictures": len(pictures), "seconds": seconds}
    painted = "1 picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    lines = [f"{out}: {painted} in {seconds:.1f} s"]
    show(values, lines, as_json)


def _read(prompts: list[str] | None) -> list[str]:
    """Return the prompts of the call, or the lines of stdin."""
    texts = prompts or [line.rstrip("\r\n") for line in sys.stdin]
    if not texts:
        raise InputError("no prompts: stdin is empty")
    if len(texts) > MOST_PROMPTS:
        raise InputError(f"{len(texts):,} prompts; one file has room for {MOST_PROMPTS:,}")
    return texts


def warn_of_unknown_words(painter: "Painter", texts: list[str]) -> None:
    """Name the words of prompts that the model never saw."""
    for text in texts:
        if unknown := painter.format.unknown(text):
            words = ", ".join(map(repr, dict.fromkeys(unknown)))
            print(f"seq2see: {text[:60]!r}: no training prompt has {words}", file=sys.stderr)


def _write(out: Path, content: bytes) -> None:
    from seq2see.files import write_atomically

    try:
        write_atomically(out, lambda path: path.write_bytes(content))
    except OSError as error:
        raise InputError(f"--out {out}: cannot write: {error.strerror}") from None
