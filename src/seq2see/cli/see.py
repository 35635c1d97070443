"""`seq2see see`: the commands that draw figures."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.cli.options import Device, Merge, Model
from seq2see.cli.paint import Guidance, Ratio, Seed, Steps, warn_of_unknown_words, with_merging
from seq2see.errors import InputError

Out = Annotated[Path, typer.Option("--out", help="A .png or .svg file.")]
Input = Annotated[
    str, typer.Argument(metavar="TEXT|PICTURE", help="A sentence, or the path of a picture.")
]

app = typer.Typer(help="Draw what a model does, and why.", rich_markup_mode=None)


@app.command("attention")
def see_attention(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(help="A sentence in the source language; for image models, a picture file."),
    ],
    out: Out,
    target: Annotated[
        str | None, typer.Option(help="Explain this translation instead of the model's own.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw every head of encoder, decoder and cross-attention.

    Rows are query positions, columns are key positions. For image models, maps are drawn over the
    picture.
    """
    from seq2see.see import figures, pictures
    from seq2see.tasks.picture_model import PictureModel
    from seq2see.tasks.table import open_model

    figures.check(out)
    opened = open_model(model, device, tasks=("translate", "images"))
    if isinstance(opened, PictureModel):
        if target is not None:
            raise InputError(f"--target {target!r}: an image model does not translate")
        seen = opened.explain(text)
        figures.save(pictures.draw(seen), out)
        print(seen.prediction.label)
        return
    explanation = opened.explain(text, target)
    figures.save(figures.attention(explanation), out)
    print(explanation.target)


@app.command("attribution")
def see_attribution(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    out: Out,
    method: Annotated[
        str, typer.Option(help="erasure, gradient, integrated, norm, rollout or attention.")
    ] = "erasure",
    target: Annotated[
        str | None, typer.Option(help="Explain this translation instead of the model's own.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw which source tokens each target token was chosen for.

    Rows are target tokens, columns are source tokens.
    """
    from seq2see.see import attribution, attribution_chart, figures
    from seq2see.tasks.table import load

    figures.check(out)
    attribution.method_of(method)
    attributed = attribution.attribute_text(load(model, device), text, target, method)
    figures.save(attribution_chart.draw(attributed), out)
    print(attributed.target)


@app.command("masks")
def see_masks(
    text: Annotated[
        str, typer.Argument(help="Words and punctuation, separated by spaces.")
    ] = "Dogs bark . Cats sleep .",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="padding, causal, window, prefix, order, packed, or several joined by +, such as "
            "causal+padding; may be repeated.",
        ),
    ] = None,
    padding: Annotated[
        int | None, typer.Option(min=0, help="Number of padding tokens; by default a third.")
    ] = None,
    reach: Annotated[int, typer.Option(min=0, help="Reach of the window to each side.")] = 1,
    prefix: Annotated[
        int | None, typer.Option(min=0, help="Number of words in the prefix; by default half.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file.")] = None,
) -> None:
    """Tabulate which keys each query may attend to, and why."""
    from seq2see.see import figures, masks

    if out is not None:
        figures.check(out)
    tables = masks.tables(kinds or masks.KINDS, masks.parse(text, padding, reach, prefix))
    if out is not None:
        figures.save(masks.draw(tables), out)
    print("\n".join(masks.report(tables)))


@app.command("positions")
def see_positions(
    out: Out,
    length: Annotated[int, typer.Option(min=2, max=1000, help="Number of positions.")] = 100,
    width: Annotated[int, typer.Option(min=2, max=1024, help="Features per position.")] = 64,
    model: Annotated[
        Path | None, typer.Option(help="Also draw the positions that this model learned.")
    ] = None,
) -> None:
    """Draw position encodings, and their dot products by distance."""
    from seq2see.see import figures, positions
    from seq2see.tasks.table import load

    figures.check(out)
    if width % 2:
        raise InputError(f"--width {width} must be even: each sine has its cosine")
    tables = {} if model is None else positions.learned(load(model, "cpu"), model)
    figures.save(positions.draw(length, width, tables), out)


@app.command("scaling")
def see_scaling(out: Out) -> None:
    """Measure why scores are divided by √d.

    Variance, weights and gradients for d of 4 to 1024.
    """
    from seq2see.see import figures, scaling

    figures.check(out)
    effects = scaling.measure()
    figures.save(scaling.draw(effects), out)
    print("\n".join(scaling.report(effects)))


@app.command("norms")
def see_norms(out: Out) -> None:
    """Compare pre- with post-norm, and layer with batch norm.

    Pre- and post-norm are measured by depth and warm-up.
    """
    from seq2see.see import figures, norm_charts, norms

    figures.check(out)
    measured = norms.measure()
    figures.save(norm_charts.draw(measured), out)
    print("\n".join(norms.report(measured)))


@app.command("merging")
def see_merging(
    model: Model,
    argument: Input,
    out: Out,
    merge: Merge = None,
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="With --merge: merge only adjacent words.")
    ] = False,
) -> None:
    """Draw which words or patches each layer merges.

    By default as the model was trained to.
    """
    from seq2see.models.reduced import with_merging
    from seq2see.see import figures, reducing

    figures.check(out)
    if neighbours and merge is None:
        raise InputError("--neighbours restricts which words --merge merges; give both")
    subject = reducing.read_subject(model, argument)
    reducible = subject.model
    if merge is not None:
        match = "neighbours" if neighbours else "bipartite"
        reducible = with_merging(reducible, merge, match=match)
    trace = reducing.follow(reducible, subject.batch)
    figures.save(subject.draw(trace), out)
    print("\n".join(trace.report(subject.tokens)))


@app.command("pruning")
def see_pruning(
    model: Model,
    argument: Input,
    out: Out,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Prune tokens below this fraction of an even share of attention."
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Keep this share of the tokens, the most attended ones."),
    ] = None,
) -> None:
    """Draw which words or patches each layer prunes.

    By default as the model was trained to.
    """
    from seq2see.models.reduced import with_pruning, with_top
    from seq2see.see import figures, reducing

    figures.check(out)
    if threshold is not None and keep is not None:
        raise InputError("--threshold and --keep are two ways to prune; give one")
    subject = reducing.read_subject(model, argument)
    reducible = subject.model
    if threshold is not None:
        reducible = with_pruning(reducible, threshold)
    if keep is not None:
        reducible = with_top(reducible, keep)
    trace = reducing.follow(reducible, subject.batch)
    figures.save(subject.draw(trace), out)
    print("\n".join(trace.report(subject.tokens)))


@app.command("painting")
def see_painting(
    model: Model,
    prompt: Annotated[str, typer.Argument(help="A description of the picture.")],
    out: Out,
    view: Annotated[
        str,
        typer.Option(
            help="forming: the picture over the steps, and attention to each word; "
            "guidance: pictures of several seeds, with guidance from 0 to 8; "
            "merging: the positions that merge in each layer."
        ),
    ] = "forming",
    seed: Seed = 1,
    steps: Steps = None,
    guidance: Guidance = None,
    merge: Ratio = None,
    device: Device = "auto",
) -> None:
    """Draw how a diffusion model paints a prompt.

    Without --merge, half of the positions merge in --view merging and none in the other views.
    """
    from seq2see.see import figures, painting
    from seq2see.tasks.table import load_painter

    figures.check(out)
    draw = painting.view_of(view)
    if view == "guidance" and guidance is not None:
        raise InputError(f"--guidance {guidance:g}: --view guidance draws several; leave it out")
    painter = load_painter(model, device)
    if merge is None:
        merge = 0.5 if view == "merging" else 0.0
    if merge:
        painter = with_merging(painter, merge)
    warn_of_unknown_words(painter, [prompt])
    figures.save(draw(painter, prompt, seed, painter.settings(steps, guidance)), out)
