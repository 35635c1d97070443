"""`seq2see bench serve`: a server under load."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2see.cli.bench import Seconds
from seq2see.cli.options import Beam, Data, Json, check_plain, show
from seq2see.errors import InputError, WorkError

if TYPE_CHECKING:
    from seq2see.bench.translate import Text

Served = Annotated[Path | None, typer.Option("--model", help="The model directory to serve.")]
Url = Annotated[str | None, typer.Option(help="A server that is running on this machine.")]
Source = Annotated[
    Path | None, typer.Option(help="Sentences to send; by default the recipe's test set.")
]
Connections = Annotated[
    list[int], typer.Option(min=1, max=1000, help="Connections of a closed loop; repeatable.")
]
Rates = Annotated[
    list[float] | None,
    typer.Option(
        "--rate", min=0.1, help="Also an open loop: requests per second, at random; repeatable."
    ),
]
PerRequest = Annotated[
    int, typer.Option("--sentences", min=1, max=1000, help="Sentences per request.")
]
Limit = Annotated[int, typer.Option(min=1, help="Send at most this many lines.")]
Window = Annotated[float, typer.Option(min=0.1, help="Seconds of each measurement.")]
Out = Annotated[
    Path | None,
    typer.Option(help="A .png or .svg file: throughput and latency against connections."),
]


def bench_serve(
    model: Served = None,
    url: Url = None,
    source: Source = None,
    data: Data = None,
    connections: Connections = [1, 8, 64],  # noqa: B006
    rates: Rates = None,
    per_request: PerRequest = 1,
    beam: Beam = None,
    limit: Limit = 1000,
    window: Window = 5.0,
    seconds: Seconds = 120.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure a server under load: throughput, latency, errors.

    Starts servers for --model, with batching and without, or measures the one at --url. Every
    answer is compared with the server's own when it was sent one request at a time.
    """
    from seq2see.bench.serve import Plan, bench_serve
    from seq2see.bench.serve_report import draw, report
    from seq2see.see import figures

    if model is None and url is None:
        raise InputError("--model DIR or --url URL is missing: which server is to be measured?")
    if out is not None:
        figures.check(out)
    text = _text(model, source, data, limit)
    plan = Plan(connections, rates or [], per_request, beam, window, seconds)
    serving = bench_serve(model, text, plan, url)
    # Printed before the figure is written: a full disk must not lose minutes of work.
    show(asdict(serving), report(serving), as_json)
    if out is not None:
        figures.save(draw(serving), out)
    if serving.failures:
        raise WorkError(f"{sum(serving.failures.values())} requests failed")


def _text(model: Path | None, source: Path | None, data: Path | None, limit: int) -> "Text":
    """Read the sentences to send; empty lines are left out."""
    from seq2see.bench.translate import Text, test_text
    from seq2see.recipe.schema import Recipe
    from seq2see.text.lines import read_lines

    if source is not None:
        check_plain(source)
        name, lines = str(source), read_lines(source)
    elif model is not None:
        text = test_text(Recipe.load(model / "recipe.toml"), model, data)
        name, lines = text.name, text.sources
    else:
        raise InputError("--url needs --source FILE, the sentences to send")
    return Text(name, [line for line in lines if line.strip()][:limit], [])
