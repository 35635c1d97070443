"""Load generator for a translation server, in a process of its own.

Closed loop: each connection sends its next request as soon as it has an answer. Open loop: requests
arrive at random (Poisson), whether or not the server keeps up; latency counts from the arrival, so
that a request that waits for a connection is not measured too kindly (coordinated omission).
Answers are kept as bytes and read after the clock has stopped: a generator that shares the cores
with the server must do little while it measures.
"""

import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seq2see.bench.connection import Broken, Connection, connect, encoded
from seq2see.bench.rounds import percentile
from seq2see.ct2.library import cores
from seq2see.errors import InputError
from seq2see.serve.settings import read_token

WARM_UP = 0.1  # of the measured seconds, before them
REFUSED = 503
PAUSE = 0.1  # seconds after an error, and at least after a refusal
PATIENCE = 30.0  # seconds for which answers may come after the end
MOST_CONNECTIONS = 1000  # of an open loop; further requests wait for one
SEED = 1


@dataclass(frozen=True)
class Job:
    """Input of the generator."""

    host: str
    port: int
    path: str
    bodies: list[Any]  # JSON of each request; sent in turn, again from the start
    expected: list[list[str]] | None  # the right translations of each request
    connections: int | None  # of a closed loop
    rate: float | None  # requests per second of an open loop
    seconds: float
    count: int | None = None  # stop after that many requests


@dataclass(frozen=True)
class Measured:
    """Output of the generator."""

    requests: int  # answered within the measured seconds
    sentences: int
    requests_per_second: float
    sentences_per_second: float
    p50_ms: float | None  # None without an answer
    p95_ms: float | None
    p99_ms: float | None
    refused: int  # answers 503; these three count from the warm-up to the last answer
    errors: int  # every other answer but 200, and none
    wrong: int | None  # other translations than expected; None if nothing was expected
    failures: dict[str, int]  # errors by reason
    generator_share: float  # of the machine's processor time, taken by this process


@dataclass(frozen=True)
class Sent:
    """A request and its answer."""

    number: int  # of its body
    began: float
    ended: float
    status: int  # 0 if there was no answer
    body: bytes  # or why there was none


class Generator:
    """Sends the requests of a job and keeps the answers."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sent: list[Sent] = []
        token = read_token(None)
        self._requests = [
            encoded(job.host, job.port, job.path, json.dumps(body).encode(), token)
            for body in job.bodies
        ]
        self._numbers = itertools.cycle(range(len(job.bodies)))
        self._left = job.count if job.count is not None else sys.maxsize
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(MOST_CONNECTIONS)
        self.begin = 0.0
        self.end = 0.0
        self.processor_seconds = 0.0

    async def run(self) -> None:
        """Send requests for the warm-up and the measured seconds, then wait for the answers."""
        job = self.job
        warm_up = 0.0 if job.count is not None else WARM_UP * job.seconds
        self.begin = time.perf_counter() + warm_up
        self.end = self.begin + job.seconds
        meter = asyncio.create_task(self._meter())
        waiting: set[asyncio.Task[Any]]
        if job.connections is not None:
            waiting = {asyncio.create_task(self._client()) for _ in range(job.connections)}
        else:
            waiting = await self._arrivals()
        if waiting:
            remaining = max(0.0, self.end - time.perf_counter()) + PATIENCE
            done, late = await asyncio.wait(waiting, timeout=remaining)
            for task in late:
                task.cancel()
            for task in (*done, *late):
                await task
        if job.count is not None:
            self.end = max(sent.ended for sent in self.sent)
            meter.cancel()
        await asyncio.gather(meter, return_exceptions=True)
        for connection in self._idle:
            connection.close()

    async def _meter(self) -> None:
        """Measure the processor time of this process within the measured seconds."""
        await asyncio.sleep(self.begin - time.perf_counter())
        began = time.process_time()
        try:
            await asyncio.sleep(self.end - time.perf_counter())
        finally:
            self.processor_seconds = time.process_time() - began

    async def _client(self) -> None:
        """One connection of the closed loop."""
        while time.perf_counter() < self.end and self._left > 0:
            self._left -= 1
            pause = await self._send(time.perf_counter())
            if pause:
                await asyncio.sleep(min(pause, max(0.0, self.end - time.perf_counter())))

    async def _arrivals(self) -> set[asyncio.Task[Any]]:
        """Start the requests of the open loop at their times; return those without an answer."""
        assert self.job.rate is not None
        draw = random.Random(SEED)
        waiting: set[asyncio.Task[Any]] = set()
        arrival = time.perf_counter()
        while (arrival := arrival + draw.expovariate(self.job.rate)) < self.end and self._left > 0:
            self._left -= 1
            await asyncio.sleep(arrival - time.perf_counter())
            task = asyncio.create_task(self._send(arrival))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        return waiting

    async def _send(self, began: float) -> float:
        """Send the next request and keep its answer; return the seconds to pause after it."""
        number = next(self._numbers)
        pause = 0.0
        try:
            async with self._free:
                connection = await self._connection()
                answer = await connection.ask(self._requests[number])
                self._idle.append(connection)
        except Broken as error:
            status, body = 0, str(error).encode()
            pause = PAUSE
        except asyncio.CancelledError:
            status, body = 0, f"no answer {PATIENCE:g} s after the end".encode()
        else:
            status, body = answer.status, answer.body
            if status == REFUSED:
                pause = max(PAUSE, answer.retry_after)
        self.sent.append(Sent(number, began, time.perf_counter(), status, body))
        return pause

    async def _connection(self) -> Connection:
        """Return an idle connection, the last used first, or open one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        return await connect(self.job.host, self.job.port)


def translations(body: bytes) -> list[str]:
    """Read the texts of an answer: ours, or LibreTranslate's."""
    values = json.loads(body)
    if "translatedText" in values:
        texts = values["translatedText"]
        return [texts] if isinstance(texts, str) else texts
    return [translation["text"] for translation in values["translations"]]


def judge(sent: Sent, expected: Sequence[list[str]] | None) -> str | None:
    """Return why an answer is an error, "refused" or "wrong"; None if it is right."""
    if sent.status == REFUSED:
        return "refused"
    if sent.status == 0:
        return sent.body.decode()
    if sent.status != 200:
        return f"status {sent.status}"
    try:
        texts = translations(sent.body)
    except (ValueError, KeyError, TypeError):
        return "an answer that is not a translation"
    return "wrong" if expected is not None and texts != expected[sent.number] else None


def measured(generator: Generator) -> Measured:
    """Read all answers and count."""
    job = generator.job
    seconds = generator.end - generator.begin
    sizes = [1 if isinstance(text := _text(body), str) else len(text) for body in job.bodies]
    verdicts = [judge(sent, job.expected) for sent in generator.sent]
    counts = Counter(verdict for verdict in verdicts if verdict is not None)
    refused = counts.pop("refused", 0)
    wrong = counts.pop("wrong", 0)
    answered = [
        sent
        for sent, verdict in zip(generator.sent, verdicts, strict=True)
        if verdict is None and sent.began >= generator.begin
    ]
    inside = [
        sent
        for sent, verdict in zip(generator.sent, verdicts, strict=True)
        if verdict is None and generator.begin <= sent.ended <= generator.end
    ]
    latencies = [1000 * (sent.ended - sent.began) for sent in answered]
    sentences = sum(sizes[sent.number] for sent in inside)
    p50, p95, p99 = (percentile(latencies, share) if latencies else None for share in (50, 95, 99))
    return Measured(
        requests=len(inside),
        sentences=sentences,
        requests_per_second=len(inside) / seconds,
        sentences_per_second=sentences / seconds,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        refused=refused,
        errors=counts.total(),
        wrong=None if job.expected is None else wrong,
        failures=dict(counts),
        generator_share=generator.processor_seconds / seconds / cores(),
    )


def _text(body: Any) -> Any:
    """Return the text or texts of a request: ours, or LibreTranslate's."""
    return body["q"] if "q" in body else body["text"]


def main() -> None:
    """Read the job, send its requests, print the figures or, on stderr, why there are none."""
    try:
        generator = Generator(Job(**json.load(sys.stdin)))
    except InputError as error:
        sys.exit(str(error))
    asyncio.run(generator.run())
    json.dump(asdict(measured(generator)), sys.stdout)


if __name__ == "__main__":
    main()
