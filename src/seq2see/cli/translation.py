"""The commands of translation models: translate, score, compare, export."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2see.cli.options import (
    Beam,
    Data,
    Device,
    Json,
    Merge,
    Model,
    Tokenize,
    check_plain,
    read_texts,
    show,
    warn_of_files,
)
from seq2see.errors import InputError

if TYPE_CHECKING:
    from seq2see.text.parallel import Pairs

LINES_PER_CHUNK = 2000


def translate(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="By default: stdin.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="The model directory; with --server, the name of one of its models."),
    ] = None,
    beam: Beam = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="Translations per line, in the Moses format.")
    ] = 1,
    engine: Annotated[
        str | None, typer.Option(help="torch or ct2; by default the one the directory is for.")
    ] = None,
    merge: Merge = None,
    as_json: Json = False,
    device: Device = "auto",
    server: Annotated[
        str | None, typer.Option(help="The URL of a server (`seq2see serve`) that translates.")
    ] = None,
) -> None:
    """Translate lines, one for one."""
    if server is not None:
        if engine is not None or merge is not None or device != "auto":
            raise InputError("--engine, --merge and --device are settings of the server, not ours")
        _translate_by_server(server, texts, model, beam, n_best, as_json)
        return
    if model is None:
        raise InputError("--model DIR or --server URL is needed")
    from seq2see.ct2.engines import load

    alone = len(texts) == 1 if texts else sys.stdin.isatty()
    translator = load(model, device, merge, engine=engine, alone=alone)
    width = beam or translator.recipe.decode.beam
    if n_best > width:
        raise InputError(f"--n-best {n_best} must be at most the beam, {width}")
    warn_of_files(texts or [], "translate", model)
    done = 0
    for chunk in _chunks(_lines(texts), 1 if sys.stdin.isatty() else LINES_PER_CHUNK):
        results = translator.search(chunk, beam=beam, n_best=n_best, first_line=done + 1)
        for number, (source, translations) in enumerate(zip(chunk, results, strict=True), done):
            _print(number, source, [asdict(one) for one in translations], n_best, as_json)
        done += len(chunk)
        sys.stdout.flush()


def _translate_by_server(
    url: str,
    texts: list[str] | None,
    model: Path | None,
    beam: int | None,
    n_best: int,
    as_json: bool,
) -> None:
    from seq2see.serve.client import Client

    client = Client(url)
    name = None if model is None else str(model)
    done = 0
    for chunk in _chunks(_lines(texts), 1 if sys.stdin.isatty() else LINES_PER_CHUNK):
        rows = client.translate(chunk, model=name, beam=beam, n_best=n_best)
        for number, (source, row) in enumerate(zip(chunk, rows, strict=True), done):
            _print(number, source, row.get("alternatives") or [row], n_best, as_json)
        done += len(chunk)
        sys.stdout.flush()


def _lines(texts: list[str] | None) -> Iterator[str]:
    from seq2see.decoding.long_text import read_stream

    return iter(texts) if texts else read_stream(sys.stdin.buffer, "stdin")


def _chunks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(islice(lines, size)):
        yield chunk


def _print(
    number: int, source: str, translations: list[dict[str, Any]], n_best: int, as_json: bool
) -> None:
    if as_json:
        print(json.dumps({"source": source, "translations": translations}, ensure_ascii=False))
    elif n_best > 1:
        for one in translations:
            print(f"{number} ||| {one['text']} ||| {one['score']:.4f}")
    else:
        print(translations[0]["text"])


def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="The source text, one sentence per line.")],
    target: Annotated[Path, typer.Option(help="Its translation, line by line.")],
    target2: Annotated[
        Path | None,
        typer.Option("--target2", help="A second translation: is the first likelier?"),
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Compute the log-probability of given translations.

    Prints one line each: log-probability, number of tokens, text. With --target2: both
    log-probabilities, 1 if the first is higher, else 0, and "tie" after it if they are equal.
    """
    from seq2see.ct2.engines import load
    from seq2see.scoring.likelihood import likelihood
    from seq2see.text.lines import read_aligned

    paths = [target] if target2 is None else [target, target2]
    check_plain(source, *paths)
    sources, *targets = read_aligned(source, *paths)
    translator = load(model, device)
    source_ids = translator.ids("source", sources, source)
    pairs: list[tuple[list[int], list[int]]] = []
    for lines, path in zip(targets, paths, strict=True):
        pairs += zip(source_ids, translator.ids("target", lines, path), strict=True)
    # In one call: the same translation in both files is then a tie to the last bit.
    scored = translator.force(pairs)
    result = likelihood(scored[: len(sources)], scored[len(sources) :])
    values = {key: value for key, value in asdict(result).items() if value is not None}
    show(values, result.rows(targets[0]), as_json)
    if not as_json:
        print(result.summary(), file=sys.stderr)


def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(
            metavar="SYSTEM",
            help="Files of translations or model directories, the baseline first.",
        ),
    ],
    reference: Annotated[Path, typer.Option(help="The right translation, line by line.")],
    source: Annotated[
        Path | None, typer.Option(help="The source text, for models to translate.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Source text of the training set, to tell rare words.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="An .html page with all sentences side by side.")
    ] = None,
    beam: Beam = None,
    tokenize: Tokenize = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Test which systems translate better than the first.

    Shows where they differ: the sentences, and the scores by length and by rare words.
    """
    from seq2see.cli.compare import read
    from seq2see.scoring.compare import compare
    from seq2see.see import comparison, comparison_page

    if out is not None:
        comparison_page.check(out)
    texts = read(systems, reference, source, train, beam=beam, tokenize=tokenize, device=device)
    result = compare(texts.systems, texts.references, texts.sources, texts.train, texts.tokenize)
    if out is not None:
        comparison_page.save(result, out)
    show(asdict(result), comparison.report(result), as_json)


def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="The new directory.")],
    quantization: Annotated[
        str, typer.Option(help="int8, small and fast; or float32, with equal results.")
    ] = "int8",
    source: Annotated[
        Path | None,
        typer.Option(help="Text for parity and calibration; by default a corpus, or random text."),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its translation, to measure the cost in BLEU.")
    ] = None,
    shortlist: Annotated[
        int,
        typer.Option(min=0, help="Score only this many target pieces per source piece; 0: all."),
    ] = 0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Convert a model to CTranslate2, and check that both agree."""
    from seq2see.ct2.export import export, report
    from seq2see.tasks.table import open_directory
    from seq2see.text import corpora

    sources, references = read_texts(source, reference)
    pairs: Pairs = ()
    if shortlist:
        directory = open_directory(model, "translate")
        pairs = corpora.load(directory.recipe.data, data, directory.history).train.pairs
    measured = export(
        model,
        out,
        quantization=quantization,
        sources=sources,
        references=references,
        shortlist=shortlist,
        pairs=pairs,
    )
    show(measured, report(measured), as_json)
