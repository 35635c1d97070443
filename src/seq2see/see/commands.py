"""`seq2see see`: the commands that draw."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.errors import InputError
from seq2see.options import Device, Model

Out = Annotated[Path, typer.Option("--out", help="A .png or .svg file.")]

app = typer.Typer(help="Draw what a model does, and why.", rich_markup_mode=None)


@app.command("attention")
def see_attention(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence of the source language.")],
    out: Out,
    target: Annotated[str | None, typer.Option(help="Look at this translation instead of the model's own.")] = None,
    device: Device = "auto",
) -> None:
    """Every layer and head of encoder, decoder and cross attention; rows look at columns."""
    from seq2see.see import figures
    from seq2see.translator import load

    figures.check(out)
    explanation = load(model, device).explain(text, target)
    figures.save(figures.attention(explanation), out)
    print(explanation.target)


@app.command("masks")
def see_masks(
    text: Annotated[str, typer.Argument(help="Words and marks with spaces between.")] = "Dogs bark . Cats sleep .",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="padding, causal, window, prefix, order or packed; causal+padding is both; again for more.",
        ),
    ] = None,
    padding: Annotated[int | None, typer.Option(min=0, help="Words of padding; by default a third.")] = None,
    reach: Annotated[int, typer.Option(min=0, help="How far a window reaches to each side.")] = 1,
    prefix: Annotated[int | None, typer.Option(min=0, help="Words in the prefix; by default half.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file.")] = None,
) -> None:
    """Which word may look at which, as tables, and of a closed place why it is closed."""
    from seq2see.see import figures, masks

    if out is not None:
        figures.check(out)
    found = masks.tables(kinds or masks.KINDS, masks.example(text, padding, reach, prefix))
    if out is not None:
        figures.save(masks.draw(found), out)
    print("\n".join(masks.lines(found)))


@app.command("positions")
def see_positions(
    out: Out,
    length: Annotated[int, typer.Option(min=2, max=1000, help="Positions.")] = 100,
    width: Annotated[int, typer.Option(min=2, max=1024, help="Features of each.")] = 64,
    model: Annotated[Path | None, typer.Option(help="Draw the positions that this model learned, too.")] = None,
) -> None:
    """Sinusoidal and rotary positions, and what they tell of distances."""
    from seq2see.see import figures, positions
    from seq2see.translator import load

    figures.check(out)
    if width % 2:
        raise InputError(f"--width {width} must be even: each sine has its cosine")
    tables = {} if model is None else positions.learned(load(model, "cpu"), model)
    figures.save(positions.draw(length, width, tables), out)


@app.command("scaling")
def see_scaling(out: Out) -> None:
    """Why scores are divided by √d: variance, weights and gradients, measured for d from 4 to 1024."""
    from seq2see.see import figures, scaling

    figures.check(out)
    found = scaling.measure()
    figures.save(scaling.draw(found), out)
    print("\n".join(scaling.lines(found)))


@app.command("norms")
def see_norms(out: Out) -> None:
    """Pre- and post-norm by depth, with and without warm-up, and layer norm against batch norm, measured."""
    from seq2see.see import figures, norm_charts, norms

    figures.check(out)
    found = norms.measure()
    figures.save(norm_charts.draw(found), out)
    print("\n".join(norms.lines(found)))
