"""The load generator, against a server that answers as each text demands."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.bench import serve_worker
from seq2see.bench.connection import Answer, Broken, Connection
from seq2see.bench.serve_worker import Generator, Job, Measured, measured


class Handler(BaseHTTPRequestHandler):
    """Answers with the text in capitals, or as its first word says; counts requests at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold back the body until the headers are confirmed
    lock = threading.Lock()
    turn = threading.Lock()
    now = 0
    most = 0
    authorization: str | None = None

    def do_POST(self) -> None:
        with self.lock:
            Handler.now += 1
            Handler.most = max(Handler.most, Handler.now)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        texts = json.loads(body)["text"]
        with contextlib.suppress(BrokenPipeError):  # the client has stopped waiting
            self._answer([texts] if isinstance(texts, str) else texts)
        with self.lock:
            Handler.now -= 1

    def _answer(self, texts: list[str]) -> None:
        Handler.authorization = self.headers["Authorization"]
        demand = texts[0].partition(" ")[0]
        status = {"busy": 503, "broken": 500}.get(demand, 200)
        if demand == "slow":
            with self.turn:
                time.sleep(0.02)
        if demand == "hang":
            time.sleep(1.0)
        if demand == "close":
            self.close_connection = True
            return
        values: Any = {"translations": [{"text": text.upper()} for text in texts]}
        if demand == "libre":
            values = {"translatedText": texts[0].upper()}
        if demand == "odd":
            values = {"translations": None}
        answer = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def run(
    port: int,
    texts: list[Any],
    *,
    connections: int | None = 1,
    rate: float | None = None,
    seconds: float = 10.0,
    count: int | None = None,
    expected: list[list[str]] | None = None,
) -> tuple[Measured, Generator]:
    bodies = [{"text": text} for text in texts]
    job = Job("127.0.0.1", port, "/", bodies, expected, connections, rate, seconds, count)

    async def send() -> Generator:
        generator = Generator(job)
        await generator.run()
        return generator

    generator = asyncio.run(send())
    return measured(generator), generator


def test_every_answer_is_counted_by_its_kind(port: int) -> None:
    texts = ["right", "busy", "broken", "false", "close", "odd", "right too"]
    expected = [[text.upper()] for text in texts]
    expected[3] = ["something else"]
    figures, generator = run(port, texts, count=14, expected=expected)
    assert (figures.requests, figures.sentences) == (4, 4)
    assert (figures.refused, figures.errors, figures.wrong) == (2, 6, 2)
    assert figures.failures == {
        "status 500": 2,
        "connection closed by the server": 2,
        "an answer that is not a translation": 2,
    }
    assert Counter(sent.number for sent in generator.sent) == dict.fromkeys(range(7), 2)


def test_lists_count_as_sentences_and_libretranslates_answers_are_read(port: int) -> None:
    texts = [["one", "two", "three"], "libre"]
    expected = [["ONE", "TWO", "THREE"], ["LIBRE"]]
    figures, _ = run(port, texts, count=8, expected=expected)
    assert (figures.requests, figures.sentences, figures.wrong) == (8, 16, 0)
    assert figures.sentences_per_second == pytest.approx(2 * figures.requests_per_second)


def test_without_expectations_nothing_is_called_wrong(port: int) -> None:
    assert run(port, ["one"], count=3)[0].wrong is None


def test_the_token_of_the_environment_is_sent(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQ2SEE_TOKEN", raising=False)
    run(port, ["one"], count=1)
    assert Handler.authorization is None
    monkeypatch.setenv("SEQ2SEE_TOKEN", "a token of the test")
    run(port, ["one"], count=1)
    assert Handler.authorization == "Bearer a token of the test"


def test_a_closed_loop_keeps_its_connections_busy_and_opens_no_more(port: int) -> None:
    Handler.most = 0
    figures, _ = run(port, ["slow"], connections=3, seconds=0.5)
    assert Handler.most == 3
    # The server takes 20 ms for each, one after the other; three wait for each other.
    assert figures.p50_ms is not None and figures.p50_ms >= 60
    assert 0 < figures.requests_per_second <= 50 and figures.errors == 0


def test_an_open_loop_sends_at_its_rate_and_counts_from_the_arrival(port: int) -> None:
    quick, generator = run(port, ["one"], connections=None, rate=200.0, seconds=1.0)
    assert 140 < len(generator.sent) < 300 and quick.errors == 0
    assert quick.p50_ms is not None
    # Twice what the server can do: the queue grows for as long as requests arrive.
    late, _ = run(port, ["slow"], connections=None, rate=100.0, seconds=1.0)
    assert late.p50_ms is not None and late.p50_ms > 4 * quick.p50_ms and late.errors == 0
    assert late.p99_ms is not None and late.p99_ms > 500


def test_requests_without_an_answer_are_errors(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_worker, "PATIENCE", 0.1)
    figures, _ = run(port, ["hang"], connections=2, seconds=0.2)
    assert figures.failures == {"no answer 0.1 s after the end": 2}
    assert (figures.requests, figures.p50_ms) == (0, None)


def test_a_server_that_is_gone_is_an_error_and_no_endless_loop() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        figures, _ = run(unused.getsockname()[1], ["one"], connections=2, seconds=0.3)
    assert figures.errors == sum(figures.failures.values()) <= 10
    assert all(reason.startswith("no connection") for reason in figures.failures)


class Transport(asyncio.Transport):
    """Takes what is written."""

    def write(self, data: Any) -> None:
        pass

    def close(self) -> None:
        pass


ANSWER = b"HTTP/1.1 503 Busy\r\ncontent-length: 7\r\nRetry-After: 2\r\n\r\n\r\n\r\nabc"


@given(st.lists(st.integers(0, len(ANSWER)), max_size=4))
def test_an_answer_may_come_in_any_pieces(cuts: list[int]) -> None:
    async def receive() -> Answer:
        connection = Connection()
        connection.connection_made(Transport())
        asking = asyncio.ensure_future(connection.ask(b""))
        await asyncio.sleep(0)
        places = [0, *sorted(cuts), len(ANSWER)]
        for start, end in pairwise(places):
            connection.data_received(ANSWER[start:end])
        return await asking

    assert asyncio.run(receive()) == Answer(503, b"\r\n\r\nabc", 2.0)


def test_an_answer_without_a_length_is_refused() -> None:
    async def receive() -> None:
        connection = Connection()
        connection.connection_made(Transport())
        asking = asyncio.ensure_future(connection.ask(b""))
        await asyncio.sleep(0)
        connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asking

    with pytest.raises(Broken, match="without Content-Length"):
        asyncio.run(receive())
