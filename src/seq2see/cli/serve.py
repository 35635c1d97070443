"""The command `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.errors import InputError

INSTALL = (
    "pip install fastapi httptools prometheus_client py3langid python-multipart uvicorn uvloop"
)


def serve(
    model: Annotated[
        list[str], typer.Option(help="A model directory, or NAME=DIR; may be repeated.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
    engine: Annotated[
        str | None, typer.Option(help="torch or ct2; by default ct2 where the model exports.")
    ] = None,
    cache: Annotated[
        int, typer.Option(min=0, help="Translations to remember per model; 0: none.")
    ] = 10_000,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Source tokens per batch, times the beam; 1: every sentence alone."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="The token that clients must send; by default SEQ2SEE_TOKEN, if set."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may call; may be repeated.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name of the server; may be repeated.")
    ] = None,
) -> None:
    """Serve translations over HTTP, and the page at /."""
    from seq2see.ct2.engines import ENGINES
    from seq2see.serve.settings import Settings, read_token

    if engine is not None and engine not in ENGINES:
        raise InputError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    token = read_token(token_file)
    settings = Settings(
        token=token,
        origins=tuple(allow_origin or ()),
        hosts=tuple(allow_host or ()),
        cache=cache,
        batch_tokens=batch_tokens,
    )
    try:
        from seq2see.serve.models import Models, Place
        from seq2see.serve.run import run
    except ImportError as error:
        raise InputError(f"serve needs {error.name}: {INSTALL}") from None
    run(Models([Place.read(argument) for argument in model], engine, settings), host, port)
