"""Commands of language, masked and classification models: generate, fill, classify."""

import json
import math
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from seq2see.cli.options import Device, Json, Merge, Model, warn_of_files
from seq2see.errors import InputError

Texts = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="By default read from stdin.")
]


def generate(
    model: Model,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="Beginnings of the texts; by default empty."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of texts per prompt.")] = 1,
    temperature: Annotated[
        float,
        typer.Option(min=0.0, help="Below 1 favours likely tokens; 0 takes the likeliest."),
    ] = 1.0,
    top_k: Annotated[
        int, typer.Option(min=0, help="Sample from the K likeliest tokens; 0: from all.")
    ] = 0,
    top_p: Annotated[
        float,
        typer.Option(
            help="Sample from the fewest tokens whose probabilities reach P; 1: from all."
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same texts.")] = 1,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens per text; by default the recipe's.")
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Generate texts with a language model, one per line.

    For models of task = "language".
    """
    from seq2see.decoding.sampling import Sampling
    from seq2see.tasks.table import load_language

    if math.isinf(temperature):
        raise InputError(f"--temperature {temperature:g} must be a finite number")
    if not 0 < top_p <= 1:
        raise InputError(f"--top-p {top_p:g} must be more than 0 and at most 1")
    writer = load_language(model, device, "language")
    sampling = Sampling(temperature, top_k, top_p, seed)
    warn_of_files(prompts or [], "generate", model, from_stdin=False)
    for prompt in prompts or [""]:
        texts = writer.generate(prompt, count, sampling, max_length)
        if as_json:
            values = {"prompt": prompt, "texts": [asdict(text) for text in texts]}
            print(json.dumps(values, ensure_ascii=False))
        else:
            print("\n".join(text.text for text in texts))


def fill(
    model: Model,
    texts: Texts = None,
    top: Annotated[int, typer.Option(min=1, help="Number of candidates per blank.")] = 5,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Fill each <mask> of a text with a masked model.

    For models of task = "masked", and texts such as "A man <mask> a guitar". A blank stands for
    one token: a word, a subword or a character, depending on the tokenizer. Several blanks are
    filled independently.
    """
    from seq2see.tasks.table import load_language

    filler = load_language(model, device, "masked")
    warn_of_files(texts or [], "fill", model)
    for text in _read(texts):
        filled = filler.fill(text, top)
        if as_json:
            print(json.dumps({"source": text, **asdict(filled)}, ensure_ascii=False))
            continue
        print(filled.text)
        for candidates in filled.blanks:
            scores = [f"{candidate.token} {candidate.probability:.3f}" for candidate in candidates]
            print("  " + " · ".join(scores))


def classify(
    model: Model,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT|IMAGE", help="By default read from stdin."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of labels per picture.")] = 5,
    merge: Merge = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Classify texts or picture files.

    For models of task = "classify" or "images". Prints one line each: label, probability, and the
    text or file name. A picture's line is followed by its likeliest labels.
    """
    from seq2see.tasks.picture_model import PictureModel
    from seq2see.tasks.table import open_model

    classifier = open_model(model, device, merge, tasks=("classify", "images"))
    pictures = isinstance(classifier, PictureModel)
    if not pictures:
        warn_of_files(texts or [], "classify", model)
    inputs = _read(texts)
    for text, labelled in zip(inputs, classifier.classify(inputs), strict=True):
        probabilities = labelled.probabilities
        likeliest = dict(list(probabilities.items())[:top]) if pictures else probabilities
        if as_json:
            values = {"source": text, "label": labelled.label, "probabilities": likeliest}
            print(json.dumps(values, ensure_ascii=False))
            continue
        print(f"{labelled.label}\t{probabilities[labelled.label]:.4f}\t{text}")
        if pictures:
            scores = [f"{label} {probability:.3f}" for label, probability in likeliest.items()]
            print("  " + " · ".join(scores))


def _read(texts: list[str] | None) -> list[str]:
    from seq2see.decoding.long_text import read_stream

    return texts or list(read_stream(sys.stdin.buffer, "stdin"))
