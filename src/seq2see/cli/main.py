"""The command line; `seq2see --help` is the tour."""

import io
import os
import sys
from typing import Annotated

import typer

import seq2see
from seq2see.cli import (
    bench,
    bench_serve,
    evaluation,
    language,
    paint,
    see,
    serve,
    training,
    translation,
)
from seq2see.errors import InputError, WorkError

INTERRUPTED = 130  # returned by typer after Ctrl-C
COMMANDS = (
    training.demo,
    training.train,
    translation.translate,
    translation.score,
    evaluation.evaluate,
    translation.compare,
    translation.export,
    language.generate,
    language.fill,
    language.classify,
    paint.paint,
    serve.serve,
)

app = typer.Typer(
    help="Sequence to sequence you can see: "
    "train a translation Transformer, look into it, ship it.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"seq2see {seq2see.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


app.add_typer(see.app, name="see")
bench.app.command("serve")(bench_serve.bench_serve)
app.add_typer(bench.app, name="bench")
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """Run a command; a mistake is one line on stderr and an exit code, never a traceback."""
    # Threads that spin while they wait lose most of their speed beside other processes. PyTorch
    # reads this when it is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # A lost process is one line of ours, not a page of PyTorch's from each of the others.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    arguments = sys.argv[1:] or ["--help"]
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # UTF-8 whatever the terminal's locale
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        code = app(args=arguments, prog_name="seq2see", standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except InputError as error:
        _fail(str(error), 2)
    except WorkError as error:
        _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped", 1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):
            _fail(error.format_message(), 2)  # a mistake in the call, found by typer
        if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch's wording
            _fail("not enough memory; a smaller model or train.batch_tokens may fit", 1)
        raise


def _fail(message: str, code: int) -> None:
    print(f"seq2see: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
