"""`seq2see see`: the commands that draw."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.cli.options import Device, Merge, Model
from seq2see.errors import InputError

Out = Annotated[Path, typer.Option("--out", help="A .png or .svg file.")]
What = Annotated[
    str, typer.Argument(metavar="TEXT|PICTURE", help="What the model reads: a sentence, or a file.")
]

app = typer.Typer(help="Draw what a model does, and why.", rich_markup_mode=None)


@app.command("attention")
def see_attention(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(help="A sentence of the source language; for a model of pictures, a file."),
    ],
    out: Out,
    target: Annotated[
        str | None, typer.Option(help="Look at this translation instead of the model's own.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Every layer and head of encoder, decoder and cross attention; rows look at columns. Of pictures: over them."""
    from seq2see.see import figures, pictures
    from seq2see.tasks.table import load, load_pictures
    from seq2see.tasks.translate import recipe_of

    figures.check(out)
    if recipe_of(model, "translate", "images").task == "images":
        if target is not None:
            raise InputError(f"--target {target!r}: a model of pictures translates nothing")
        sight = load_pictures(model, device).explain(text)
        figures.save(pictures.draw(sight), out)
        print(sight.found.label)
        return
    explanation = load(model, device).explain(text, target)
    figures.save(figures.attention(explanation), out)
    print(explanation.target)


@app.command("masks")
def see_masks(
    text: Annotated[
        str, typer.Argument(help="Words and marks with spaces between.")
    ] = "Dogs bark . Cats sleep .",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="padding, causal, window, prefix, order or packed; causal+padding is both; again for more.",
        ),
    ] = None,
    padding: Annotated[
        int | None, typer.Option(min=0, help="Words of padding; by default a third.")
    ] = None,
    reach: Annotated[int, typer.Option(min=0, help="How far a window reaches to each side.")] = 1,
    prefix: Annotated[
        int | None, typer.Option(min=0, help="Words in the prefix; by default half.")
    ] = None,
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
    model: Annotated[
        Path | None, typer.Option(help="Draw the positions that this model learned, too.")
    ] = None,
) -> None:
    """Sinusoidal and rotary positions, and what they tell of distances."""
    from seq2see.see import figures, positions
    from seq2see.tasks.table import load

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


@app.command("merging")
def see_merging(
    model: Model,
    what: What,
    out: Out,
    merge: Merge = None,
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="With --merge: only words side by side.")
    ] = False,
) -> None:
    """Which words, or patches of a picture, each layer merges; by default as the model was trained to."""
    from seq2see.see import figures, reducing

    figures.check(out)
    if neighbours and merge is None:
        raise InputError("--neighbours says which words --merge may merge; give both")
    shown = reducing.subject(model, what)
    match = "neighbours" if neighbours else "bipartite"
    ours = shown.model if merge is None else shown.model.with_merging(merge, match=match)
    journey = reducing.follow(ours, shown.batch)
    figures.save(shown.draw(journey), out)
    print("\n".join(journey.lines(shown.tokens)))


@app.command("pruning")
def see_pruning(
    model: Model,
    what: What,
    out: Out,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Prune what gets less than this part of an even share."),
    ] = None,
    keep: Annotated[
        float | None, typer.Option(min=0, max=1, help="Or keep this share: what gets the most.")
    ] = None,
) -> None:
    """Which words, or patches of a picture, each layer prunes; by default as the model was trained to."""
    from seq2see.see import figures, reducing

    figures.check(out)
    if threshold is not None and keep is not None:
        raise InputError("--threshold and --keep are two ways to prune; give one")
    shown = reducing.subject(model, what)
    ours = shown.model if threshold is None else shown.model.with_pruning(threshold)
    journey = reducing.follow(ours if keep is None else ours.with_top(keep), shown.batch)
    figures.save(shown.draw(journey), out)
    print("\n".join(journey.lines(shown.tokens)))
