"""The command line; `seq2see --help` is the tour."""

import io
import sys

import typer

from seq2see.cli import bench, language, see, training, translation
from seq2see.errors import InputError, WorkError

INTERRUPTED = 130  # returned by typer after Ctrl-C
COMMANDS = (
    training.demo,
    training.train,
    translation.translate,
    translation.score,
    translation.evaluate,
    translation.compare,
    translation.export,
    language.generate,
    language.fill,
    language.classify,
)

app = typer.Typer(
    help="Sequence to sequence you can see: "
    "train a translation Transformer, look into it, ship it.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(see.app, name="see")
app.add_typer(bench.app, name="bench")
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """Run a command; a mistake is one line on stderr and an exit code, never a traceback."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # UTF-8 whatever the terminal's locale
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        arguments = sys.argv[1:] or ["--help"]
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
