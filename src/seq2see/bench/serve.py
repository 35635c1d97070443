"""Throughput and latency of a translation server under load, beside the offline rate."""

import contextlib
import http.client
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seq2see.bench import offline_worker
from seq2see.bench.process import run_worker
from seq2see.bench.rounds import rounds
from seq2see.bench.serve_rounds import Load, Row, Target, in_turn, median, row
from seq2see.bench.serve_worker import translations
from seq2see.bench.server_process import Server, running, serving
from seq2see.bench.translate import Text
from seq2see.ct2 import engine as ct2
from seq2see.errors import InputError, WorkError
from seq2see.scoring.card import machine
from seq2see.serve.settings import read_token

BATCHED, ALONE = "batching", "batching off"
WITHOUT_CACHE = ("--cache", "0")  # the same sentences are sent again and again
BATCHING_OFF = ("--batch-tokens", "1")
PATH = "/v1/translate"


@dataclass(frozen=True)
class Plan:
    """Loads to measure, and for how long."""

    connections: Sequence[int] = (1, 8, 64)  # of closed loops
    rates: Sequence[float] = ()  # of open loops
    per_request: int = 1  # sentences
    beam: int | None = None
    window: float = 5.0  # seconds of one measurement
    seconds: float = 120.0  # for all rounds; the first always runs


@dataclass(frozen=True)
class Serving:
    """Result of `bench serve`."""

    model: str | None
    url: str | None
    text: str
    sentences: int
    sentences_per_request: int
    window_seconds: float
    rounds: int
    rows: list[Row]
    offline_sentences_per_second: float | None
    failures: dict[str, int]  # errors by reason
    machine: dict[str, Any]


def say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def bench_serve(
    model: Path | None,
    text: Text,
    plan: Plan,
    url: str | None = None,
    say: Callable[[str], None] = say_on_stderr,
) -> Serving:
    """Measure every load in rounds: on servers started for it, or on the one at `url`.

    Every answer is compared with that to the same request before, when it was sent alone. With a
    model, the offline rate is measured in the same rounds.
    """
    with contextlib.ExitStack() as stack:
        servers = _servers(model, url, stack, say)
        engine = None if model is None else engine_directory(model)
        targets = _targets(servers, requests(text, plan), say)
        loads = [Load(name, count) for name in servers for count in plan.connections]
        # An open loop is for the server as it is used: without batching it would only queue.
        loads += [Load(next(iter(servers)), None, rate) for rate in plan.rates]

        def offline_rate() -> float:
            assert engine is not None
            return offline(engine, text, plan.beam, plan.window).sentences_per_second

        rate = None if engine is None else offline_rate
        results = in_turn(targets, loads, rate, plan.window, rounds(plan.seconds), say)
    failures: Counter[str] = Counter()
    for by_round in results.measured.values():
        for figures in by_round.values():
            failures.update(figures.failures)
    return Serving(
        model=None if model is None else str(model),
        url=url,
        text=text.name,
        sentences=len(text.sources),
        sentences_per_request=plan.per_request,
        window_seconds=plan.window,
        rounds=max(map(len, results.measured.values())),
        rows=[row(load, results, alone(load)) for load in loads],
        offline_sentences_per_second=median([*results.offline.values()]),
        failures=dict(failures),
        machine=machine(),
    )


def _servers(
    model: Path | None, url: str | None, stack: contextlib.ExitStack, say: Callable[[str], None]
) -> dict[str, Server]:
    if url is not None:
        return {url: running(url)}
    assert model is not None
    servers = {}
    for name, options in ((BATCHED, ()), (ALONE, BATCHING_OFF)):
        say(f"starting the server: {name}")
        servers[name] = stack.enter_context(serving(command(model, *WITHOUT_CACHE, *options)))
    return servers


def _targets(
    servers: dict[str, Server], bodies: list[Any], say: Callable[[str], None]
) -> dict[str, Target]:
    targets = {}
    for name, server in servers.items():
        say(f"one request at a time: {name}")
        targets[name] = Target(server, PATH, bodies, one_by_one(server, PATH, bodies))
    return targets


def command(model: Path, *options: str) -> list[str]:
    """The command that serves a model, without its port."""
    # Like the command itself, the server does not import from the working directory (-P).
    return [sys.executable, "-P", "-m", "seq2see", "serve", "--model", str(model), *options]


def engine_directory(model: Path) -> Path:
    """The directory that a server of the model translates with: its export, if it has one."""
    from seq2see.serve.exports import exported

    if ct2.exported(model):
        return model
    try:
        return exported(model)
    except InputError:
        return model


def requests(text: Text, plan: Plan) -> list[Any]:
    """The bodies of all requests of our own interface."""
    settings = {} if plan.beam is None else {"beam": plan.beam}
    size = plan.per_request
    return [
        {"text": group[0] if size == 1 else group, **settings}
        for group in groups(text.sources, size)
    ]


def one_by_one(server: Server, path: str, bodies: Sequence[Any]) -> list[list[str]]:
    """Translations of every request, each sent when the one before it is answered."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    if (token := read_token(None)) is not None:
        headers["Authorization"] = f"Bearer {token}"
    outputs = []
    with contextlib.closing(connection):
        for body in bodies:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise WorkError(f"POST {path}: status {response.status}: {answer[:200]!r}")
            outputs.append(translations(answer))
    return outputs


def groups(texts: Sequence[str], size: int) -> list[list[str]]:
    """Divide texts, or their translations, among requests."""
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


def offline(model: Path, text: Text, beam: int | None, seconds: float) -> offline_worker.Measured:
    """Translate all sentences in one call, in a worker process."""
    job = offline_worker.Job(str(model), text.sources, beam, seconds)
    return offline_worker.Measured(**run_worker("seq2see.bench.offline_worker", asdict(job), {}))


def alone(load: Load) -> Load:
    """The same load on the server without batching."""
    return Load(ALONE, load.connections, load.rate)
