"""Throughput and latency of a translation server under load, beside the offline rate."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seq2see.bench import offline_worker, serve_worker
from seq2see.bench.process import run_worker
from seq2see.bench.rounds import medians, ratios, rounds, turns
from seq2see.bench.serve_worker import Measured
from seq2see.bench.server_process import Server, running, serving
from seq2see.errors import InputError
from seq2see.scoring.card import machine

BATCHED, ALONE = "batching", "batching off"
WITHOUT_CACHE = ("--cache", "0")  # the same sentences are sent again and again
BATCHING_OFF = ("--batch", "1")
PATH = "/v1/translate"
FIGURES = ("requests_per_second", "sentences_per_second", "p50_ms", "p95_ms", "p99_ms")


@dataclass(frozen=True)
class Load:
    """Requests to one server: a closed loop of connections, or an open loop at a rate."""

    server: str
    connections: int | None
    rate: float | None = None  # requests per second

    def __str__(self) -> str:
        if self.rate is not None:
            return f"{self.server} · {self.rate:g} requests/s"
        return f"{self.server} · {self.connections} connection{'s' * (self.connections != 1)}"


@dataclass(frozen=True)
class Row(Load):
    """Medians over the rounds of one load; errors, refusals and wrong answers are sums."""

    requests_per_second: float = 0.0
    sentences_per_second: float = 0.0
    p50_ms: float | None = None  # None if no request was answered
    p95_ms: float | None = None
    p99_ms: float | None = None
    errors: int = 0
    refused: int = 0
    wrong: int | None = None  # None if the right answers are unknown
    of_offline: float | None = None  # share of the offline rate in the same round
    of_batching_off: float | None = None  # times the rate without batching, same round and load
    generator_share: float = 0.0  # of the machine's processor time
    memory_mb: float | None = None  # resident memory of the server afterwards


@dataclass(frozen=True)
class Text:
    """Sentences to send, some per request."""

    name: str
    sources: list[str]
    per_request: int = 1

    def groups(self, texts: Sequence[str]) -> list[list[str]]:
        """Divide texts, one for each source, among the requests."""
        size = self.per_request
        return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


@dataclass(frozen=True)
class Target:
    """A server, the requests that it gets, and the right answers if they are known."""

    server: Server
    path: str
    bodies: list[Any]
    expected: list[list[str]] | None


@dataclass(frozen=True)
class Results:
    """Figures by load and round; the offline rate by round."""

    measured: dict[Load, dict[int, Measured]]
    memory_mb: dict[Load, float | None] = field(default_factory=dict)
    offline: dict[int, float] = field(default_factory=dict)


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
    *,
    url: str | None = None,
    connections: Sequence[int] = (1, 8, 64),
    rates: Sequence[float] = (),
    beam: int | None = None,
    window: float = 5.0,
    seconds: float = 120.0,
    say: Callable[[str], None] = say_on_stderr,
) -> Serving:
    """Measure every load in rounds: on servers started for it, or on the one at `url`.

    With a model, the offline rate is measured in the same rounds and every answer is compared with
    the offline translation.
    """
    if not any(map(str.strip, text.sources)):
        raise InputError(f"{text.name}: all lines are empty; there is nothing to translate")
    expected = None if model is None else offline(model, text, beam, 0.0).outputs
    with contextlib.ExitStack() as stack:
        servers = _servers(model, url, stack, say)
        targets = {name: ours(server, text, beam, expected) for name, server in servers.items()}
        loads = [Load(name, count) for name in servers for count in connections]
        # An open loop is for the server as it is used: without batching it would only queue.
        loads += [Load(next(iter(servers)), None, rate) for rate in rates]

        def offline_rate() -> float:
            assert model is not None
            return offline(model, text, beam, window).sentences_per_second

        results = in_turn(
            targets, loads, None if model is None else offline_rate, window, rounds(seconds), say
        )
    failures: dict[str, int] = {}
    for by_round in results.measured.values():
        for figures in by_round.values():
            for reason, count in figures.failures.items():
                failures[reason] = failures.get(reason, 0) + count
    offline_medians = medians([{"rate": rate} for rate in results.offline.values()] or [{}])
    return Serving(
        model=None if model is None else str(model),
        url=url,
        text=text.name,
        sentences=len(text.sources),
        sentences_per_request=text.per_request,
        window_seconds=window,
        rounds=max(map(len, results.measured.values())),
        rows=[row(load, results, alone(load)) for load in loads],
        offline_sentences_per_second=offline_medians.get("rate"),
        failures=failures,
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


def command(model: Path, *options: str) -> list[str]:
    """The command that serves a model, without its port."""
    # Like the command itself, the server does not import from the working directory (-P).
    return [sys.executable, "-P", "-m", "seq2see", "serve", "--model", str(model), *options]


def ours(server: Server, text: Text, beam: int | None, expected: list[str] | None) -> Target:
    """Requests of our own interface."""
    settings = {} if beam is None else {"beam": beam}
    bodies = [
        {"text": group[0] if text.per_request == 1 else group, **settings}
        for group in text.groups(text.sources)
    ]
    return Target(server, PATH, bodies, None if expected is None else text.groups(expected))


def offline(model: Path, text: Text, beam: int | None, seconds: float) -> offline_worker.Measured:
    """Translate all sentences in one call, in a worker process."""
    job = offline_worker.Job(str(model), text.sources, beam, seconds)
    return offline_worker.Measured(**run_worker("seq2see.bench.offline_worker", asdict(job), {}))


def in_turn(
    targets: Mapping[str, Target],
    loads: Sequence[Load],
    offline_rate: Callable[[], float] | None,
    window: float,
    rounds: Iterable[int],
    say: Callable[[str], None],
) -> Results:
    """Run the offline translation, if there is one, and every load in each round."""
    settings: list[Load | None] = [*([None] if offline_rate else []), *loads]
    results = Results({load: {} for load in loads})
    for number, load in turns(settings, rounds, alternate=True):
        say(f"round {number} · {load or 'offline'}")
        if load is None:
            assert offline_rate is not None
            results.offline[number] = offline_rate()
        else:
            target = targets[load.server]
            results.measured[load][number] = generate(target, load, window)
            results.memory_mb[load] = target.server.resident_mb()
    return results


def generate(target: Target, load: Load, seconds: float, count: int | None = None) -> Measured:
    """Send requests for some seconds, or that many of them, from a worker process."""
    job = serve_worker.Job(
        host=target.server.host,
        port=target.server.port,
        path=target.path,
        bodies=target.bodies,
        expected=target.expected,
        connections=load.connections,
        rate=load.rate,
        seconds=seconds,
        count=count,
    )
    return Measured(**run_worker("seq2see.bench.serve_worker", asdict(job), {}))


def alone(load: Load) -> Load:
    """The same load on the server without batching."""
    return Load(ALONE, load.connections, load.rate)


def row(load: Load, results: Results, reference: Load) -> Row:
    """Summarise the rounds of a load, beside the offline rate and a reference load."""
    measured = results.measured[load]
    figures = list(_figures(measured.values()))
    rates = {number: result.sentences_per_second for number, result in measured.items()}
    other = {
        number: result.sentences_per_second
        for number, result in results.measured.get(reference, {}).items()
        if result.sentences_per_second and reference != load
    }
    known = [result.wrong for result in measured.values() if result.wrong is not None]
    summary: dict[str, Any] = medians(figures) if figures else {}
    shares = [{"share": result.generator_share} for result in measured.values()]
    return Row(
        **asdict(load),
        **summary,
        errors=sum(result.errors for result in measured.values()),
        refused=sum(result.refused for result in measured.values()),
        wrong=sum(known) if known else None,
        of_offline=_median(ratios(rates, results.offline)),
        of_batching_off=_median(ratios(rates, other)),
        generator_share=medians(shares)["share"],
        memory_mb=results.memory_mb[load],
    )


def _figures(measured: Iterable[Measured]) -> Iterator[dict[str, float]]:
    """Yield the figures of the rounds in which requests were answered."""
    for result in measured:
        values = asdict(result)
        if result.p50_ms is not None:
            yield {name: values[name] for name in FIGURES}


def _median(values: Sequence[float]) -> float | None:
    return medians([{"value": value} for value in values])["value"] if values else None
