"""Options that commands share, the files they name, and the printing of results."""

import json
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from seq2see.errors import InputError
from seq2see.files import write_text

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")  # endings of files with columns or keys


def _recipes(begun: str) -> list[str]:
    """Complete the name of a shipped recipe on the shell."""
    from seq2see.recipe.toml import shipped

    return [name for name in shipped() if name.startswith(begun)]


RecipeName = Annotated[
    str,
    typer.Argument(help="A TOML file, or the name of a shipped recipe.", autocompletion=_recipes),
]
Model = Annotated[Path, typer.Option("--model", help="The model directory.")]
Data = Annotated[Path | None, typer.Option("--data", help="The folder of the corpus.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Drawing = Annotated[Path, typer.Option("--out", help="A .png, .svg or .html file.")]
Dark = Annotated[bool, typer.Option("--dark", help="Draw on a dark ground, for dark slides.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Override a recipe key: train.lr=0.002.")
]
Merge = Annotated[
    int | None,
    typer.Option("--merge", min=0, help="Tokens to merge in each layer of the encoder."),
]
Beam = Annotated[
    int | None, typer.Option("--beam", min=1, max=64, help="Beam size; by default the recipe's.")
]

Tokenize = Annotated[
    str | None,
    typer.Option(
        "--tokenize",
        help="BLEU's tokenisation: 13a, intl, zh, ja-mecab, ko-mecab, char or flores200; "
        "by default that of the target language.",
    ),
]


def read_texts(source: Path | None, reference: Path | None) -> tuple[list[str], list[str]]:
    """Read the lines of --source and --reference; [] for a file that is not given."""
    from seq2see.text.lines import read_aligned, read_lines

    if source is None:
        if reference is not None:
            raise InputError("--reference needs the --source that it translates")
        return [], []
    check_plain(source)
    if reference is None:
        return read_lines(source), []
    check_plain(reference)
    sources, references = read_aligned(source, reference)
    return sources, references


def check_plain(*paths: Path) -> None:
    """Refuse files that are tables by their names: a raw line of theirs is not a sentence."""
    for path in paths:
        if path.name.lower().removesuffix(".gz").endswith(TABLES):
            rule = "this command takes plain text, one sentence per line"
            raise InputError(f"{path}: a table; {rule}, and a recipe takes tables as data.test")


def warn_of_files(texts: Iterable[str], command: str, model: Path, from_stdin: bool = True) -> None:
    """Warn of each text that is the name of a file, with the call that reads the file."""
    call = f"seq2see {command} --model {shlex.quote(str(model))}"
    for text in texts:
        if os.path.isfile(text):
            file = shlex.quote(text)
            source = f"< {file}" if from_stdin else f'"$(cat {file})"'
            taken = f"{text} is a file; its name is taken as the text"
            print(f"seq2see: {taken}. To read its lines: {call} {source}", file=sys.stderr)


def show(values: dict[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Print a result as JSON or as text."""
    print(json.dumps(values, ensure_ascii=False) if as_json else "\n".join(lines))


def check_out(out: Path, *inputs: Path) -> None:
    """Refuse, before the work is done, an --out file that cannot or must not be written."""
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out}: exists and is not a file")
    if not os.access(out.parent, os.W_OK):
        raise InputError(f"--out {out}: cannot write: Permission denied")
    if out.resolve() in [path.resolve() for path in inputs]:
        raise InputError(f"--out {out}: is an input; it is not overwritten")


def write_lines(out: Path, lines: Iterable[str]) -> None:
    """Write an --out file line by line, as `sacrebleu REFERENCE -i OUT` reads it."""
    try:
        write_text(out, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise InputError(f"--out {out}: cannot write: {error.strerror}") from None
