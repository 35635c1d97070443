"""`seq2see see`: the figures that need no model: ideas, corpora, logs and scores."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.cli.options import Dark, Drawing
from seq2see.errors import InputError


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
    out: Annotated[Path | None, typer.Option(help="A .png, .svg or .html file.")] = None,
    dark: Dark = False,
) -> None:
    """Tabulate which keys each query may attend to, and why."""
    from seq2see.see import figures, masks

    if out is not None:
        figures.check(out, dark)
    tables = masks.tables(kinds or masks.KINDS, masks.parse(text, padding, reach, prefix))
    if out is not None:
        figures.save(masks.draw(tables), out, dark, masks.numbers(tables))
    print("\n".join(masks.report(tables)))


def see_positions(
    out: Drawing,
    length: Annotated[int, typer.Option(min=2, max=1000, help="Number of positions.")] = 100,
    width: Annotated[int, typer.Option(min=2, max=1024, help="Features per position.")] = 64,
    model: Annotated[
        Path | None, typer.Option(help="Also draw the positions that this model learned.")
    ] = None,
    dark: Dark = False,
) -> None:
    """Draw position encodings, and their dot products by distance."""
    from seq2see.see import figures, positions
    from seq2see.tasks.table import load

    figures.check(out, dark)
    if width % 2:
        raise InputError(f"--width {width} must be even: each sine has its cosine")
    tables = {} if model is None else positions.learned(load(model, "cpu"), model)
    figures.save(positions.draw(length, width, tables), out, dark)


def see_scaling(out: Drawing, dark: Dark = False) -> None:
    """Measure why scores are divided by √d.

    Variance, weights and gradients for d of 4 to 1024.
    """
    from seq2see.see import figures, scaling

    figures.check(out, dark)
    effects = scaling.measure()
    figures.save(scaling.draw(effects), out, dark)
    print("\n".join(scaling.report(effects)))


def see_norms(out: Drawing, dark: Dark = False) -> None:
    """Compare pre- with post-norm, and layer with batch norm.

    Pre- and post-norm are measured by depth and warm-up.
    """
    from seq2see.see import figures, norm_charts, norms

    figures.check(out, dark)
    measured = norms.measure()
    figures.save(norm_charts.draw(measured), out, dark)
    print("\n".join(norms.report(measured)))


def see_schedule(
    out: Drawing,
    recipes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RECIPE]...", help="Recipes, or none for the paper's schedule."),
    ] = None,
    widths: Annotated[
        list[int] | None, typer.Option("--width", min=1, help="Repeatable; the first is the base.")
    ] = None,
    warmups: Annotated[
        list[int] | None, typer.Option("--warmup", min=1, help="Repeatable; the first is the base.")
    ] = None,
    updates: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000_000, help="Length of the run; by default the recipe's, or 20,000."
        ),
    ] = None,
    dark: Dark = False,
) -> None:
    """Draw learning rates by width and warm-up, or of recipes."""
    from seq2see.see import figures, schedule
    from seq2see.tasks.table import read_recipe

    figures.check(out, dark)
    if recipes:
        if widths or warmups:
            raise InputError("--width and --warmup are the recipe's own; leave them out")
        curves = [schedule.of_recipe(name, read_recipe(name), updates) for name in recipes]
        groups = [("Learning rate", curves)]
    else:
        by_width, by_warmup = schedule.by_width_and_warmup(
            widths or schedule.WIDTHS, warmups or schedule.WARMUPS, updates or schedule.UPDATES
        )
        groups = [("By width", by_width), ("By warm-up", by_warmup)]
        curves = [*by_width, *by_warmup]
    figures.save(schedule.draw(groups), out, dark)
    print("\n".join(schedule.report(curves)))


def see_smoothing(
    out: Drawing,
    epsilon: Annotated[
        float, typer.Option(min=0.001, max=0.9, help="Share of the probability to spread.")
    ] = 0.1,
    classes: Annotated[
        int, typer.Option(min=6, max=100_000, help="Entries of the vocabulary.")
    ] = 10,
    dark: Dark = False,
) -> None:
    """Draw label smoothing: the target, and the loss."""
    from seq2see.see import figures, smoothing

    figures.check(out, dark)
    figures.save(smoothing.draw(classes, epsilon), out, dark)
    print("\n".join(smoothing.report(classes, epsilon)))


def see_bleu(
    output: Annotated[str, typer.Argument(help="A translation.")],
    reference: Annotated[str, typer.Argument(help="The translation to compare it with.")],
    out: Drawing,
    tokenize: Annotated[
        str, typer.Option(help="13a, intl, zh, ja-mecab, ko-mecab, char or flores200.")
    ] = "13a",
    dark: Dark = False,
) -> None:
    """Count the n-grams of one sentence by hand, as BLEU does."""
    from seq2see.see import bleu, figures

    figures.check(out, dark)
    counted = bleu.count(output, reference, tokenize)
    figures.save(bleu.draw(counted), out, dark, counted.numbers())
    print("\n".join(counted.factors()))


def see_batch(
    out: Drawing,
    corpus: Annotated[
        list[str] | None,
        typer.Argument(help="A table of pairs, or two aligned files; by default the captions."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Take the tokenizers of this model directory.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, max=8, help="Sentences of the batch.")] = 3,
    longest: Annotated[int, typer.Option(min=1, max=40, help="Most tokens of a sentence.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sentences.")] = 1,
    dark: Dark = False,
) -> None:
    """Draw a batch of a corpus: ids, shift, padding and masks."""
    from seq2see.see import batch, figures

    figures.check(out, dark)
    drawn = batch.draw_lines(corpus or [], model, sentences, longest, seed)
    figures.save(batch.draw(drawn), out, dark, drawn.numbers())
    print("\n".join(drawn.report()))


def see_training(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    out: Drawing,
    by: Annotated[str, typer.Option(help="updates, minutes or tokens.")] = "updates",
    dark: Dark = False,
) -> None:
    """Draw the curves of runs: loss, BLEU, learning rate, speed."""
    from seq2see.see import figures, training

    figures.check(out, dark)
    if by not in training.UNITS:
        raise InputError(f"--by {by!r} is not one of {', '.join(training.UNITS)}")
    if len(runs) > training.MOST_RUNS:
        raise InputError(f"{len(runs)} runs; a figure has at most {training.MOST_RUNS}")
    read = training.read_runs(runs)
    figures.save(training.draw(read, by), out, dark)
    print("\n".join(training.report(read)))


COMMANDS = (
    see_masks,
    see_positions,
    see_scaling,
    see_norms,
    see_schedule,
    see_smoothing,
    see_batch,
    see_training,
    see_bleu,
)
