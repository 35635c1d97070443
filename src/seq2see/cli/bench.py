"""`seq2see bench`: the commands that measure speed."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2see.cli.options import Data, Device, Json, Model, Set, read_texts, show
from seq2see.errors import WorkError

if TYPE_CHECKING:
    from seq2see.bench.translate import Text

LENGTHS = "16,32,64,128,256,512,1024,2048,4096"

app = typer.Typer(help="Measure speed.", rich_markup_mode=None)


@app.command("train")
def bench_train(
    recipe: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped recipe.")],
    data: Data = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to measure.")] = 30.0,
    overrides: Set = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Target tokens a second, and the share of the machine's matrix peak that they use."""
    from seq2see.bench.train import bench_train
    from seq2see.models.directory import pick_device
    from seq2see.recipe.schema import Recipe

    found = bench_train(Recipe.load(recipe, overrides or []), data, seconds, pick_device(device))
    share = found["utilisation"]
    used = "not counted for this model.kind · " if share is None else f"{share:.1%} of "
    text = (
        f"{found['target_tokens_per_second']:,.0f} target tokens/s · utilisation {used}"
        f"{found['peak_gflops']:.0f} GFLOPS · peak memory {found['peak_memory_mb']:,.0f} MB · "
        f"{found['updates']} updates in {found['seconds']:.1f} s · {found['parameters']:,} parameters"
    )
    show(found, [text], as_json)


@app.command("translate")
def bench_translate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="The text; else the recipe's test set, or made up.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its translation: which setting costs BLEU?")
    ] = None,
    beams: Annotated[
        list[int], typer.Option("--beam", min=1, max=64, help="Beam size; again for more.")
    ] = [1, 4],  # noqa: B006
    batches: Annotated[
        list[int],
        typer.Option(
            "--batch", min=1, help="Source tokens of a batch, times the beam; again for more."
        ),
    ] = [8192],  # noqa: B006
    threads: Annotated[
        list[int] | None,
        typer.Option("--threads", min=1, help="Threads, again for more; by default 1 and all."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Translate at most so many sentences.")] = 1000,
    seconds: Annotated[
        float, typer.Option(min=0, help="Repeat as often as fits; once in any case.")
    ] = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: throughput against latency.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Speed, memory, start-up and BLEU of every way to translate on this CPU, and which way to take."""
    from seq2see.bench.report import draw, lines
    from seq2see.bench.translate import bench_translate
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    text, threads = _text(source, reference), threads or []
    found = bench_translate(
        model, text, beams=beams, batches=batches, threads=threads, limit=limit, seconds=seconds
    )
    show(
        asdict(found), lines(found), as_json
    )  # first: minutes of work are not lost with a full disk
    if out is not None and found.rows:
        figures.save(draw(found), out)
    if found.failed:
        raise WorkError(
            f"{len(found.failed)} of {len(found.failed) + len(found.rows)} settings failed"
        )


@app.command("attention")
def bench_attention(
    lengths: Annotated[
        str, typer.Option(help="Lengths n to measure, with commas between.")
    ] = LENGTHS,
    width: Annotated[int, typer.Option(min=1, help="Numbers of each position: d.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Sequences at once.")] = 4,
    reach: Annotated[
        int, typer.Option(min=1, help="How far window attention looks to each side.")
    ] = 32,
    seconds: Annotated[
        float, typer.Option(min=0, help="Repeat as often as fits; once in any case.")
    ] = 60.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: time, memory and path over n.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How time and memory of recurrence, convolution and attention grow with the length: table 1, measured."""
    from seq2see.bench.attention import bench_attention, read_lengths
    from seq2see.bench.attention_report import draw, lines
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    found = bench_attention(
        read_lengths(lengths), width=width, batch=batch, reach=reach, seconds=seconds
    )
    show(asdict(found), lines(found), as_json)
    if out is not None:
        figures.save(draw(found), out)


@app.command("reduce")
def bench_reduce(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="A text to translate; else the recipe's test set.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Its translation.")] = None,
    data: Data = None,
    merges: Annotated[
        list[int] | None, typer.Option("--merge", min=0, help="Tokens a layer; again for more.")
    ] = None,
    thresholds: Annotated[
        list[float] | None,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            help="Prune below this part of an even share; again for more.",
        ),
    ] = None,
    keeps: Annotated[
        list[float] | None,
        typer.Option("--keep", min=0, max=1, help="Share of the tokens to keep; again for more."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="At most so many sentences or pictures.")
    ] = 1000,
    batch: Annotated[
        int, typer.Option(min=1, help="So many at once, where the encoder is alone.")
    ] = 64,
    beam: Annotated[int, typer.Option(min=1, max=64, help="Beam size.")] = 1,
    seconds: Annotated[
        float, typer.Option(min=0, help="Repeat as often as fits; once in any case.")
    ] = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: quality against speed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What merging and pruning tokens save and cost, for a trained model on its test set.

    Without --merge, --threshold and --keep three amounts of each are measured; else what is given.
    """
    from seq2see.bench.reduce import bench_reduce, settings, task_of
    from seq2see.bench.reduce_report import draw, lines
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    task = task_of(model, _text(source, reference), data, limit=limit, batch=batch, beam=beam)
    if merges is thresholds is keeps is None:
        merges, thresholds, keeps = [2, 4, 8], [0.25, 0.5, 0.75], [0.75, 0.5, 0.25]
    wanted = settings(
        merges or [], thresholds or [], keeps or [], text=task.batches[0].source.dim() == 2
    )
    found = bench_reduce(task, wanted, seconds)
    show({"model": str(model), **asdict(found)}, lines(found), as_json)
    if out is not None:
        figures.save(draw(found), out)


def _text(source: Path | None, reference: Path | None) -> "Text | None":
    """What is to be translated, if it is given."""
    from seq2see.bench.translate import Text

    sources, references = read_texts(source, reference)
    return Text(str(source), sources, references) if source else None
