"""Loads on servers, measured in rounds beside the offline rate, and their rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from seq2see.bench import serve_worker
from seq2see.bench.process import run_worker
from seq2see.bench.rounds import medians, ratios, turns
from seq2see.bench.serve_worker import Measured
from seq2see.bench.server_process import Server

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
        of_offline=median(ratios(rates, results.offline)),
        of_batching_off=median(ratios(rates, other)),
        generator_share=medians(shares)["share"],
        memory_mb=results.memory_mb[load],
    )


def _figures(measured: Iterable[Measured]) -> Iterator[dict[str, float]]:
    """Yield the figures of the rounds in which requests were answered."""
    for result in measured:
        values = asdict(result)
        if result.p50_ms is not None:
            yield {name: values[name] for name in FIGURES}


def median(values: Sequence[float]) -> float | None:
    """Return the median of figures, one per round; None if there are none."""
    return medians([{"value": value} for value in values])["value"] if values else None
