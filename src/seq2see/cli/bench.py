"""`seq2see bench`: the commands that measure speed."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2see.cli.options import Data, Device, Json, Model, RecipeName, Set, read_texts, show
from seq2see.cli.paint import Steps
from seq2see.errors import WorkError

if TYPE_CHECKING:
    from seq2see.bench.translate import Text

LENGTHS = "16,32,64,128,256,512,1024,2048,4096"
MERGES = [2, 4, 8]
THRESHOLDS = [0.25, 0.5, 0.75]
KEEPS = [0.75, 0.5, 0.25]
RATIOS = [0.25, 0.5, 0.75]
METHODS = ["all", "keys"]

Seconds = Annotated[
    float,
    typer.Option("--seconds", min=0, help="Time budget for rounds; the first always runs."),
]
Reference = Annotated[
    Path | None, typer.Option("--reference", help="Translations of --source, for BLEU.")
]
Merges = Annotated[
    list[int] | None, typer.Option("--merge", min=0, help="Tokens merged per layer; repeatable.")
]
Thresholds = Annotated[
    list[float] | None,
    typer.Option(
        "--threshold",
        min=0,
        max=1,
        help="Prune tokens with less than this fraction of an even share; repeatable.",
    ),
]
Keeps = Annotated[
    list[float] | None,
    typer.Option("--keep", min=0, max=1, help="Share of the tokens to keep; repeatable."),
]
Ratios = Annotated[
    list[float],
    typer.Option(
        "--ratio", min=0, max=0.75, help="Share of positions merged in self-attention; repeatable."
    ),
]
Methods = Annotated[
    list[str],
    typer.Option(
        "--method",
        help="all: queries, keys and values; keys: keys and values; layer: all, and in "
        "cross-attention and feed-forward, too; repeatable.",
    ),
]
Every = Annotated[
    list[int],
    typer.Option("--every", min=1, help="Steps for which a matching is used; repeatable."),
]
Sizes = Annotated[
    list[int] | None,
    typer.Option("--size", min=1, help="Also time pictures of this many pixels; repeatable."),
]
MinTokens = Annotated[
    int, typer.Option(min=1, help="Positions of the smallest grid on which to merge.")
]
PicturesPerCall = Annotated[
    int, typer.Option("--count", min=1, max=1000, help="Pictures painted in a call.")
]
TestPictures = Annotated[
    int | None,
    typer.Option(min=0, help="Pictures that measure quality; by default the recipe's number."),
]

app = typer.Typer(help="Measure speed.", rich_markup_mode=None)


@app.command("train")
def bench_train(
    recipe: RecipeName,
    data: Data = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to measure.")] = 30.0,
    overrides: Set = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Measure the speed of training, and the use of the processor.

    Target tokens per second, and utilisation of the machine's matrix peak.
    """
    from seq2see.bench.train import bench_train
    from seq2see.models.directory import pick_device
    from seq2see.tasks.table import read_recipe

    checked = read_recipe(recipe, overrides or [])
    result = bench_train(checked, data, seconds, pick_device(device))
    share = result["utilisation"]
    utilisation = "not counted for this model.kind · " if share is None else f"{share:.1%} of "
    text = (
        f"{result['target_tokens_per_second']:,.0f} target tokens/s · "
        f"utilisation {utilisation}{result['peak_gflops']:.0f} GFLOPS · "
        f"peak memory {result['peak_memory_mb']:,.0f} MB · "
        f"{result['updates']} updates in {result['seconds']:.1f} s · "
        f"{result['parameters']:,} parameters"
    )
    show(result, [text], as_json)


@app.command("translate")
def bench_translate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="The text; by default the recipe's test set, or made up.")
    ] = None,
    reference: Reference = None,
    beams: Annotated[
        list[int], typer.Option("--beam", min=1, max=64, help="Beam size; repeatable.")
    ] = [1, 4],  # noqa: B006
    batches: Annotated[
        list[int],
        typer.Option("--batch", min=1, help="Source tokens per batch, times the beam; repeatable."),
    ] = [8192],  # noqa: B006
    threads: Annotated[
        list[int] | None,
        typer.Option("--threads", min=1, help="Threads; repeatable; by default 1 and all."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Translate at most this many lines.")] = 1000,
    seconds: Seconds = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: throughput against latency.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure every way to translate: speed, memory, start-up, BLEU."""
    from seq2see.bench.translate import bench_translate
    from seq2see.bench.translate_report import draw, report
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    text = _text(source, reference)
    frontier = bench_translate(
        model,
        text,
        beams=beams,
        batches=batches,
        threads=threads or [],
        limit=limit,
        seconds=seconds,
    )
    # Printed before the figure is written: a full disk must not lose minutes of work.
    show(asdict(frontier), report(frontier), as_json)
    if out is not None and frontier.rows:
        figures.save(draw(frontier), out)
    if frontier.failed:
        count = len(frontier.failed) + len(frontier.rows)
        raise WorkError(f"{len(frontier.failed)} of {count} settings failed")


@app.command("attention")
def bench_attention(
    lengths: Annotated[
        str, typer.Option(help="Sequence lengths n to measure, separated by commas.")
    ] = LENGTHS,
    width: Annotated[int, typer.Option(min=1, help="Width d of the layers.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Sequences per batch.")] = 4,
    reach: Annotated[
        int, typer.Option(min=1, help="Positions that window attention sees on each side.")
    ] = 32,
    seconds: Seconds = 60.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: time, memory and path over n.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how the cost of attention grows with length.

    Beside it recurrence, convolution and window attention: the paper's table 1.
    """
    from seq2see.bench.attention import bench_attention, read_lengths
    from seq2see.bench.attention_report import draw, report
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    growth = bench_attention(
        read_lengths(lengths), width=width, batch=batch, reach=reach, seconds=seconds
    )
    show(asdict(growth), report(growth), as_json)
    if out is not None:
        figures.save(draw(growth), out)


@app.command("reduce")
def bench_reduce(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="A text to translate; by default the recipe's test set.")
    ] = None,
    reference: Reference = None,
    data: Data = None,
    merges: Merges = None,
    thresholds: Thresholds = None,
    keeps: Keeps = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many lines or pictures.")] = 1000,
    batch: Annotated[
        int, typer.Option(min=1, help="Batch size where the encoder is measured alone.")
    ] = 64,
    beam: Annotated[int, typer.Option(min=1, max=64, help="Beam size.")] = 1,
    seconds: Seconds = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: quality against speed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure what merging and pruning tokens save and cost.

    For a trained model, on its test set. Without --merge, --threshold and --keep, three amounts of
    each are measured.
    """
    from seq2see.bench.reduce import bench_reduce, settings
    from seq2see.bench.reduce_report import draw, report
    from seq2see.bench.reduce_workload import workload_of
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    text = _text(source, reference)
    workload = workload_of(model, text, data, limit=limit, batch=batch, beam=beam)
    amounts = (merges or [], thresholds or [], keeps or [])
    if merges is thresholds is keeps is None:
        amounts = (MERGES, THRESHOLDS, KEEPS)
    frontier = bench_reduce(workload, settings(*amounts, text=workload.text), seconds)
    show({"model": str(model), **asdict(frontier)}, report(frontier), as_json)
    if out is not None:
        figures.save(draw(frontier), out)


@app.command("paint")
def bench_paint(
    model: Model,
    ratios: Ratios = RATIOS,
    methods: Methods = METHODS,
    every: Every = [1],  # noqa: B006
    sizes: Sizes = None,
    min_tokens: MinTokens = 256,
    count: PicturesPerCall = 16,
    steps: Steps = None,
    test_pictures: TestPictures = None,
    classifier: Annotated[
        Path | None, typer.Option(help="A model that classifies pictures painted by class.")
    ] = None,
    data: Data = None,
    seconds: Seconds = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg file: accuracy against speed, and parts.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure what merging positions saves and costs when painting.

    For a trained diffusion model, against the same model untouched, with fused attention: time,
    memory, time by part and, on its test set, quality. Other sizes than the model's own have no
    quality, since it was not trained for them.
    """
    from seq2see.bench.paint import bench_paint
    from seq2see.bench.paint_report import draw, report
    from seq2see.bench.paint_workload import settings, workload_of
    from seq2see.see import figures

    if out is not None:
        figures.check(out)
    workload = workload_of(
        model,
        sizes or [],
        min_tokens=min_tokens,
        count=count,
        steps=steps,
        test_pictures=test_pictures,
        classifier=classifier,
        data=data,
    )
    requested = settings([*workload.painters], ratios, methods, every)
    frontier = bench_paint(workload, requested, seconds)
    show({"model": str(model), **asdict(frontier)}, report(frontier), as_json)
    if out is not None:
        figures.save(draw(frontier), out)


def _text(source: Path | None, reference: Path | None) -> "Text | None":
    """Read the text to translate, if one is given."""
    from seq2see.bench.translate import Text

    sources, references = read_texts(source, reference)
    return Text(str(source), sources, references) if source else None
