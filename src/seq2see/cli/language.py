"""The commands of models that know one language, or pictures: generate, fill, classify."""

import json
import math
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from seq2see.cli.options import Device, Json, Merge, Model
from seq2see.errors import InputError

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Else: stdin.")]


def generate(
    model: Model,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="How the texts begin; else: with anything."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="So many texts for each prompt.")] = 1,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Below 1 more of the likely; 0: the likeliest.")
    ] = 1.0,
    top_k: Annotated[
        int, typer.Option(min=0, help="Draw among the K likeliest tokens; 0: among all.")
    ] = 0,
    top_p: Annotated[
        float, typer.Option(help="Draw among the fewest tokens that make up P; 1: among all.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed, the same texts.")] = 1,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a text; by default the recipe's.")
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Write texts with a language model (task = "language"), a line each."""
    from seq2see.decoding.sampling import Sampling
    from seq2see.tasks.table import load_language

    if math.isinf(temperature):
        raise InputError(f"--temperature {temperature:g} must be a finite number")
    if not 0 < top_p <= 1:
        raise InputError(f"--top-p {top_p:g} must be more than 0 and at most 1")
    writer = load_language(model, device, "language")
    how = Sampling(temperature, top_k, top_p, seed)
    for prompt in prompts or [""]:
        written = writer.generate(prompt, count, how, max_length)
        if as_json:
            texts = [asdict(each) for each in written]
            print(json.dumps({"prompt": prompt, "texts": texts}, ensure_ascii=False))
        else:
            print("\n".join(each.text for each in written))


def fill(
    model: Model,
    texts: Texts = None,
    top: Annotated[int, typer.Option(min=1, help="So many candidates for each blank.")] = 5,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Fill each <mask> of a text with a masked model (task = "masked"): "A man <mask> a guitar".

    A blank is one token: a word, or as the tokenizer cuts, a piece of one or a character. Several are filled
    independently.
    """
    from seq2see.tasks.table import load_language

    filler = load_language(model, device, "masked")
    for text in _lines(texts):
        found = filler.fill(text, top)
        if as_json:
            print(json.dumps({"source": text, **asdict(found)}, ensure_ascii=False))
            continue
        print(found.text)
        for candidates in found.blanks:
            print("  " + " · ".join(f"{each.token} {each.probability:.3f}" for each in candidates))


def classify(
    model: Model,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT|IMAGE]...", help="Else: stdin.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="So many labels for each picture.")] = 5,
    merge: Merge = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Tell the label of each text (task = "classify") or picture file (task = "images").

    A line each: label, probability, and the text or the name of the file. Below a picture's, the likeliest labels.
    """
    from seq2see.tasks.table import load_language, load_pictures
    from seq2see.tasks.translate import recipe_of

    pictures = recipe_of(model, "classify", "images").task == "images"
    classifier = (
        load_pictures(model, device, merge)
        if pictures
        else load_language(model, device, "classify", merge)
    )
    lines = _lines(texts)
    for text, found in zip(lines, classifier.classify(lines), strict=True):
        likeliest = (
            dict(list(found.probabilities.items())[:top]) if pictures else found.probabilities
        )
        if as_json:
            print(
                json.dumps(
                    {"source": text, "label": found.label, "probabilities": likeliest},
                    ensure_ascii=False,
                )
            )
            continue
        print(f"{found.label}\t{found.probabilities[found.label]:.4f}\t{text}")
        if pictures:
            print(
                "  "
                + " · ".join(f"{name} {probability:.3f}" for name, probability in likeliest.items())
            )


def _lines(texts: list[str] | None) -> list[str]:
    from seq2see.decoding.long_text import read_stream

    return texts or list(read_stream(sys.stdin.buffer, "stdin"))
