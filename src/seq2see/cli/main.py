"""The command line; `seq2see --help` is the tour."""

import io
import json
import sys
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from seq2see.cli import bench, see
from seq2see.cli.language import classify, fill, generate
from seq2see.cli.options import (
    Beam,
    Data,
    Device,
    Json,
    Merge,
    Model,
    Set,
    check_out,
    read_texts,
    show,
    write_lines,
)
from seq2see.errors import InputError, WorkError

if TYPE_CHECKING:
    from seq2see.ct2.engine import Engine
    from seq2see.tasks.translator import Translator

LINES_AT_ONCE = 2000
INTERRUPTED = 130  # what typer returns after Ctrl-C

app = typer.Typer(
    help="Sequence to sequence you can see: train a translation Transformer, look into it, ship it.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(see.app, name="see")
app.add_typer(bench.app, name="bench")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    minutes: Annotated[float | None, typer.Option(help="Train so long.")] = None,
    device: Device = "auto",
) -> None:
    """Train on the embedded corpus, score it, translate, and draw its attention."""
    from seq2see.cli.demo import demo

    demo(out, minutes, device, Console(stderr=True, soft_wrap=True, emoji=False))


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped recipe.")],
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="The run directory; by default runs/RECIPE.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Budget instead of the recipe's: train.minutes.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")
    ] = False,
    init: Annotated[
        Path | None, typer.Option(help="Begin with the weights that fit of this model directory.")
    ] = None,
    overrides: Set = None,
    device: Device = "auto",
) -> None:
    """Train the model that a recipe describes, and score it."""
    from seq2see.tasks.run import train

    budget = [] if minutes is None else [f"train.minutes={minutes}"]
    settings = [*(overrides or []), *budget]
    train(recipe, data=data, out=out, overrides=settings, resume=resume, init=init, device=device)


@app.command()
def translate(
    model: Model,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Else: stdin.")
    ] = None,
    beam: Beam = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="So many translations a line, as Moses prints them.")
    ] = 1,
    engine: Annotated[
        str, typer.Option(help="torch, or ct2 for what `seq2see export` wrote.")
    ] = "torch",
    merge: Merge = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Translate lines, one for one."""
    from seq2see.decoding.long_text import read_stream

    alone = len(texts) == 1 if texts else sys.stdin.isatty()
    translator = _open(model, engine, device, alone, merge)
    width = beam or translator.recipe.decode.beam
    if n_best > width:
        raise InputError(f"--n-best {n_best} must be at most the beam, {width}")
    at_once = 1 if sys.stdin.isatty() else LINES_AT_ONCE
    lines = iter(texts) if texts else read_stream(sys.stdin.buffer, "stdin")
    done = 0
    while some := list(islice(lines, at_once)):
        found = translator.search(some, beam=beam, n_best=n_best, first_line=done + 1)
        for number, (source, translations) in enumerate(zip(some, found, strict=True), start=done):
            if as_json:
                rows = [asdict(translation) for translation in translations]
                print(json.dumps({"source": source, "translations": rows}, ensure_ascii=False))
            elif n_best > 1:
                for each in translations:
                    print(f"{number} ||| {each.text} ||| {each.score:.4f}")
            else:
                print(translations[0].text)
        done += len(some)
        sys.stdout.flush()


def _open(
    model: Path, engine: str, device: str, alone: bool, merge: int | None
) -> "Translator | Engine":
    """The model by the engine's name; `alone` if it is for one sentence at a time."""
    if engine == "ct2":
        if device not in ("auto", "cpu"):
            raise InputError(f"--device {device}: --engine ct2 translates on the cpu")
        if merge is not None:
            raise InputError(f"--merge {merge}: is for --engine torch")
        from seq2see.ct2 import engine as ct2

        return ct2.load(model, alone=alone)
    if engine != "torch":
        raise InputError(f"--engine {engine!r} is not one of torch, ct2")
    from seq2see.tasks.table import load

    return load(model, device, merge)


@app.command()
def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="The source text, one sentence a line.")],
    target: Annotated[Path, typer.Option(help="Its translation, line by line.")],
    target2: Annotated[
        Path | None,
        typer.Option(
            "--target2", help="Another: does the model find the first likelier? A tie is no."
        ),
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Log-probability, tokens and text of given translations, a line each; with --target2 both and 1 or 0."""
    from seq2see.scoring.likelihood import likelihood
    from seq2see.tasks.table import load
    from seq2see.text.corpora import read_aligned

    paths = [target] if target2 is None else [target, target2]
    sources, *targets = read_aligned(source, *paths)
    translator = load(model, device)
    source_ids = translator.ids("source", sources, source)
    target_ids = [
        translator.ids("target", lines, path) for lines, path in zip(targets, paths, strict=True)
    ]
    # In one call: the same translation in both files is then a tie to the last bit.
    scored = translator.force(
        [pair for ids in target_ids for pair in zip(source_ids, ids, strict=True)]
    )
    found = likelihood(scored[: len(sources)], scored[len(sources) :])
    values = {key: value for key, value in asdict(found).items() if value is not None}
    show(values, found.rows(targets[0]), as_json)
    if not as_json:
        print(found.summary(), file=sys.stderr)


@app.command()
def evaluate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="The file to translate, one sentence a line.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Its translation, line by line.")] = None,
    data: Data = None,
    test: Annotated[
        str | None, typer.Option(help="Without --source: this test set of the recipe's data.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the translations to this file, line by line.")
    ] = None,
    beam: Beam = None,
    merge: Merge = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Translate a file, score it with sacreBLEU, and count the kinds of its errors.

    Without --source and --reference, put a model of any task to a test set of the data that it was trained on.
    """
    if source is None and reference is None and out is None and beam is None:
        from seq2see.tasks.run import evaluate_own

        own = evaluate_own(model, data, test, device, merge)
        return show(own.values, own.lines, as_json)
    if source is None or reference is None:
        raise InputError(
            f"Missing option '--{'reference' if source else 'source'}', to translate and score a file"
        )
    if data is not None or test is not None:
        raise InputError(
            "--data and --test choose a test set of the recipe's; --source and --reference are one"
        )
    from seq2see.tasks.table import load
    from seq2see.tasks.translate import evaluate as evaluate_texts
    from seq2see.text.corpora import read_aligned

    sources, references = read_aligned(source, reference)
    if out is not None:
        check_out(out, source, reference)
    translator = load(model, device, merge)
    found = evaluate_texts(translator, sources, references, beam)
    if out is not None:
        write_lines(out, found.outputs)
    show(found.values(), [*found.scores.report(), "", *found.errors.report()], as_json)


@app.command()
def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(
            metavar="SYSTEM",
            help="A file of translations or a model directory; the first: the baseline.",
        ),
    ],
    reference: Annotated[Path, typer.Option(help="The right translation, line by line.")],
    source: Annotated[
        Path | None, typer.Option(help="The source text; models translate it.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Source text of the training: tells which words are rare.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="An .html page with all sentences side by side.")
    ] = None,
    beam: Beam = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Test which system translates better than the first, and show where they differ."""
    from seq2see.cli.compare import read
    from seq2see.scoring.compare import compare
    from seq2see.see import comparison, comparison_page

    if out is not None:
        comparison_page.check(out)
    texts = read(systems, reference, source, train, beam=beam, device=device)
    found = compare(texts.systems, texts.references, texts.sources, texts.train)
    if out is not None:
        comparison_page.save(found, out)
    show(asdict(found), comparison.report(found), as_json)


@app.command()
def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="The new directory.")],
    quantization: Annotated[
        str, typer.Option(help="int8, small and fast; or float32, the same numbers.")
    ] = "int8",
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to compare and calibrate with; else a shortlist's corpus, or what is made up."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its translation: what does it cost to be fast?")
    ] = None,
    shortlist: Annotated[
        int,
        typer.Option(
            min=0,
            help="Weigh only so many pieces for each in a batch's sources, by the recipe's corpus.",
        ),
    ] = 0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write a model for `translate --engine ct2`, once it is proven to be the same."""
    from seq2see.ct2.export import export
    from seq2see.ct2.export import lines as report
    from seq2see.tasks.table import open_directory
    from seq2see.text import corpora

    sources, references = read_texts(source, reference)
    pairs = (
        corpora.load(open_directory(model, "translate").recipe.data, data).train.pairs
        if shortlist
        else []
    )
    found = export(
        model,
        out,
        quantization=quantization,
        sources=sources,
        references=references,
        shortlist=shortlist,
        pairs=pairs,
    )
    show(found, report(found), as_json)


for command in (generate, fill, classify):
    app.command()(command)


def main() -> None:
    """Run a command; a mistake is one line on stderr and an exit code, never a traceback."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(
                stream, io.TextIOWrapper
            ):  # text is UTF-8 here, whatever the terminal's language
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        code = app(args=sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except InputError as error:
        _fail(str(error), 2)
    except WorkError as error:
        _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped; if this was a training, --resume goes on from its last checkpoint", 1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):
            _fail(error.format_message(), 2)  # a mistake in the call, found by typer
        if isinstance(error, MemoryError) or "allocate memory" in str(
            error
        ):  # torch says it with a RuntimeError
            _fail("not enough memory; a smaller model or train.batch_tokens may fit", 1)
        raise


def _fail(message: str, code: int) -> None:
    print(f"seq2see: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
