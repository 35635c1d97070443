"""`seq2see see`: the figures of merging, pruning and painting."""

from typing import Annotated

import typer

from seq2see.cli.options import Dark, Device, Drawing, Merge, Model
from seq2see.cli.paint import Guidance, Ratio, Seed, Steps, warn_of_unknown_words, with_merging
from seq2see.errors import InputError

Input = Annotated[
    str, typer.Argument(metavar="TEXT|PICTURE", help="A sentence, or the path of a picture.")
]


def see_merging(
    model: Model,
    argument: Input,
    out: Drawing,
    merge: Merge = None,
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="With --merge: merge only adjacent words.")
    ] = False,
    dark: Dark = False,
) -> None:
    """Draw which words or patches each layer merges.

    By default as the model was trained to.
    """
    from seq2see.models.reduced import with_merging
    from seq2see.see import figures, reducing, reduction_trace

    figures.check(out, dark)
    if neighbours and merge is None:
        raise InputError("--neighbours restricts which words --merge merges; give both")
    subject = reducing.read_subject(model, argument)
    reducible = subject.model
    if merge is not None:
        match = "neighbours" if neighbours else "bipartite"
        reducible = with_merging(reducible, merge, match=match)
    trace = reduction_trace.follow(reducible, subject.batch)
    figures.save(subject.draw(trace), out, dark, trace.numbers(subject.tokens))
    print("\n".join(trace.report(subject.tokens)))


def see_pruning(
    model: Model,
    argument: Input,
    out: Drawing,
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
    dark: Dark = False,
) -> None:
    """Draw which words or patches each layer prunes.

    By default as the model was trained to.
    """
    from seq2see.models.reduced import with_pruning, with_top
    from seq2see.see import figures, reducing, reduction_trace

    figures.check(out, dark)
    if threshold is not None and keep is not None:
        raise InputError("--threshold and --keep are two ways to prune; give one")
    subject = reducing.read_subject(model, argument)
    reducible = subject.model
    if threshold is not None:
        reducible = with_pruning(reducible, threshold)
    if keep is not None:
        reducible = with_top(reducible, keep)
    trace = reduction_trace.follow(reducible, subject.batch)
    figures.save(subject.draw(trace), out, dark, trace.numbers(subject.tokens))
    print("\n".join(trace.report(subject.tokens)))


def see_painting(
    model: Model,
    prompt: Annotated[str, typer.Argument(help="A description of the picture.")],
    out: Drawing,
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
    dark: Dark = False,
) -> None:
    """Draw how a diffusion model paints a prompt.

    Without --merge, half of the positions merge in --view merging and none in the other views.
    """
    from seq2see.see import figures, painting
    from seq2see.tasks.table import load_painter

    figures.check(out, dark)
    draw = painting.view_of(view)
    if view == "guidance" and guidance is not None:
        raise InputError(f"--guidance {guidance:g}: --view guidance draws several; leave it out")
    painter = load_painter(model, device)
    if merge is None:
        merge = 0.5 if view == "merging" else 0.0
    if merge:
        painter = with_merging(painter, merge)
    warn_of_unknown_words(painter, [prompt])
    figures.save(draw(painter, prompt, seed, painter.settings(steps, guidance)), out, dark)


COMMANDS = (see_merging, see_pruning, see_painting)
