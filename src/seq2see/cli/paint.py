"""Command of diffusion models: paint."""

import shlex
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2see.cli.options import Device, Json, Model, check_out, show, warn_of_files
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
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of the first picture; each further one adds 1.")
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Steps from noise to a picture; by default the recipe's."),
]
Guidance = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=100.0,
        help="Influence of the prompt: 0 none, 1 as trained, more is exaggerated; "
        "by default the recipe's.",
    ),
]
Sampler = Annotated[str | None, typer.Option(help="ddim, ddpm or euler; by default the recipe's.")]
Ratio = Annotated[
    float | None,
    typer.Option("--merge", min=0.0, max=0.75, help="Share of positions merged in self-attention."),
]
Scale = Annotated[
    int, typer.Option(min=1, max=64, help="Side of the square that each pixel becomes.")
]


def paint(
    model: Model,
    out: Out,
    prompts: Prompts = None,
    count: Count = 1,
    seed: Seed = 1,
    steps: Steps = None,
    guidance: Guidance = None,
    sampler: Sampler = None,
    merge: Ratio = None,
    scale: Scale = 4,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Paint pictures from prompts with a diffusion model.

    For models of task = "diffusion". The same prompt and seed give the same picture.
    """
    from rich.console import Console

    from seq2see.pictures.sheet import sheet
    from seq2see.tasks.table import load_painter
    from seq2see.training.stages import Stages

    if out.suffix.lower() != ".png":
        raise InputError(f"--out {out}: must end in .png")
    check_out(out)
    warn_of_files(prompts or [], f"paint --out {shlex.quote(str(out))}", model)
    texts = prompts or _read()
    painter = load_painter(model, device)
    _check_size(painter, len(texts) * count, scale)
    if merge:
        painter = with_merging(painter, merge)
    settings = painter.settings(steps, guidance, sampler)
    warn_of_unknown_words(painter, texts)
    repeated = [text for text in texts for _ in range(count)]
    seeds = [*range(seed, seed + count)] * len(texts)
    started = time.perf_counter()
    with Stages(Console(stderr=True)) as stages:
        pictures = painter.paint(repeated, seeds, settings, lambda share: stages("painting", share))
    seconds = time.perf_counter() - started
    _write(out, sheet(pictures, count, scale))
    rows = [{"prompt": text, "seeds": seeds[:count]} for text in texts]
    values = {"out": str(out), "rows": rows, "pictures": len(pictures), "seconds": seconds}
    values |= {"sampler": settings.sampler, "steps": settings.steps, "shift": settings.shift}
    values |= {"guidance": settings.guidance, "merge": merge or 0.0}
    painted = "1 picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    lines = [f"{out}: {painted} in {seconds:.1f} s"]
    show(values, lines, as_json)


def _read() -> list[str]:
    """Read prompts from stdin, one per line."""
    from seq2see.decoding.long_text import read_stream

    if sys.stdin.isatty():
        print("seq2see: one prompt per line, Ctrl-D after the last", file=sys.stderr)
    texts = list(islice(read_stream(sys.stdin.buffer, "stdin"), MOST_PROMPTS + 1))
    if not texts:
        raise InputError("no prompts: stdin is empty")
    if len(texts) > MOST_PROMPTS:
        raise InputError(f"stdin has more than {MOST_PROMPTS:,} prompts; paint some at a time")
    for number, text in enumerate(texts, start=1):
        if "\0" in text:
            raise InputError(f"stdin:{number}: a NUL byte; a prompt is text")
    return texts


def _check_size(painter: "Painter", count: int, scale: int) -> None:
    """Refuse a file so large that seq2see itself would not read it, before painting it."""
    from seq2see.pictures.files import MOST_PIXELS
    from seq2see.pictures.sheet import GAP

    _, height, width = painter.format.shape
    pixels = count * (height * scale + GAP) * (width * scale + GAP)
    if pixels > MOST_PIXELS:
        needed = f"{count:,} pictures at --scale {scale} are {pixels / 1e6:,.0f} million pixels"
        raise InputError(f"{needed}; a file has at most {MOST_PIXELS / 1e6:.0f} million")


def with_merging(painter: "Painter", ratio: float) -> "Painter":
    """Merge positions as --merge asks."""
    from seq2see.models.merged import TokenMerging

    try:
        return painter.merged(TokenMerging(ratio))
    except InputError as error:
        raise InputError(f"--merge {ratio:g}: {error}") from None


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
