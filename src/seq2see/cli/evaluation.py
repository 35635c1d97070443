"""The command `evaluate`: scores of a model on files, or on the test sets of its recipe."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from seq2see.cli.options import (
    Beam,
    Data,
    Device,
    Json,
    Merge,
    Model,
    Tokenize,
    check_out,
    check_plain,
    show,
    write_lines,
)
from seq2see.errors import InputError

Classifier = Annotated[
    Path | None, typer.Option(help="A model of pictures, to judge those painted by class.")
]

Hard = Annotated[
    bool,
    typer.Option(
        "--hard", help="Translate 300 hard sentences of the model's languages, made by a generator."
    ),
]


def evaluate(
    model: Model,
    source: Annotated[
        Path | None, typer.Option(help="The file to translate, one sentence per line.")
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
    tokenize: Tokenize = None,
    merge: Merge = None,
    classifier: Classifier = None,
    hard: Hard = False,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Score translations with sacreBLEU, and count their errors.

    Translates --source and compares with --reference. Without both, scores a model of any task on
    a test set of its recipe. With --hard, counts the numbers, names and the like that get lost.
    """
    files = (source, reference, test, out, tokenize)
    if hard:
        if any(option is not None for option in (*files, data, classifier)):
            raise InputError("--hard makes its own sentences; it takes no file or test set")
        return _evaluate_hard(model, beam, merge, as_json, device)
    if classifier is not None:
        if any(option is not None for option in (*files, beam, merge)):
            raise InputError("--classifier takes no option but --data beside --model")
        return _evaluate_classes(model, classifier, data, as_json, device)
    if all(option is None for option in (source, reference, out, beam, tokenize)):
        return _evaluate_own(model, data, test, merge, as_json, device)
    if source is None or reference is None:
        missing = "reference" if source else "source"
        raise InputError(f"Missing option '--{missing}', to translate and score a file")
    if data is not None or test is not None:
        rule = "--source and --reference are one themselves"
        raise InputError(f"--data and --test choose a test set of the recipe; {rule}")
    _evaluate_files(model, source, reference, out, beam, tokenize, merge, as_json, device)


def _evaluate_files(
    model: Path,
    source: Path,
    reference: Path,
    out: Path | None,
    beam: int | None,
    tokenize: str | None,
    merge: int | None,
    as_json: bool,
    device: str,
) -> None:
    """Translate a file and score the translations; warn of lines that the model was trained on."""
    from seq2see.ct2.engines import load
    from seq2see.scoring.tokenization import bleu_metric
    from seq2see.tasks.translate import evaluate
    from seq2see.text.history import seen_in_training
    from seq2see.text.lines import read_aligned

    check_plain(source, reference)
    sources, references = read_aligned(source, reference)
    if out is not None:
        check_out(out, source, reference)
    translator = load(model, device, merge)
    if tokenize is not None:
        bleu_metric(tokenize)  # refused before the first translation
    seen = seen_in_training(model, zip(sources, references, strict=True))
    if seen:
        pairs = f"{seen:,} of {len(sources):,} pairs"
        shared = f"{pairs} share a sentence with the training data of {model}"
        print(f"seq2see: {shared}; the score flatters it", file=sys.stderr)
    result = evaluate(translator, sources, references, beam, tokenize)
    if out is not None:
        write_lines(out, result.outputs)
    values = result.values()
    if seen is not None:
        values["seen_in_training"] = seen
    show(values, [*result.scores.report(), "", *result.errors.report()], as_json)


def _evaluate_own(
    model: Path, data: Path | None, test: str | None, merge: int | None, as_json: bool, device: str
) -> None:
    """Score a model of any task on a test set of its recipe."""
    from seq2see.ct2.engine import exported
    from seq2see.ct2.engines import load
    from seq2see.tasks.run import evaluate_opened
    from seq2see.tasks.table import open_model

    opened = load(model, device, merge) if exported(model) else open_model(model, device, merge)
    report = evaluate_opened(opened, model, data, test)
    show(report.values, report.lines, as_json)


def _evaluate_hard(
    model: Path, beam: int | None, merge: int | None, as_json: bool, device: str
) -> None:
    """Report the share of hard sentences that come through, by kind."""
    from seq2see.ct2.engines import load
    from seq2see.scoring.hard import report
    from seq2see.tasks.hard import evaluate_hard

    kinds = evaluate_hard(load(model, device, merge), beam)
    values = {"hard": {name: asdict(kind) for name, kind in kinds.items()}}
    show(values, report(kinds), as_json)


def _evaluate_classes(
    model: Path, classifier: Path, data: Path | None, as_json: bool, device: str
) -> None:
    """Score pictures painted by class with a classifier."""
    from seq2see.tasks.painted_classes import evaluate_classes
    from seq2see.tasks.table import load_painter, load_pictures

    painter = load_painter(model, device)
    report = evaluate_classes(painter, load_pictures(classifier, device), data)
    show(report.values, report.lines, as_json)
