"""Connections: their bounds in size and time, whatever a client sends."""

import asyncio
import json
import socket
from http.client import HTTPResponse
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

from seq2see.serve.protocol import Joining

TOKEN = "a-token-of-the-tests"
CHUNKED = b"POST /translate HTTP/1.1\r\ntransfer-encoding: chunked\r\n"


def read(client: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    answer = b""
    while part := client.recv(65536):
        answer += part
    return answer


def read_status(client: socket.socket) -> int:
    """Read an answer on a connection that stays open; return its status."""
    with HTTPResponse(client) as response:
        response.begin()
        response.read()
        return response.status


def error(answer: bytes) -> str:
    """Read the error of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head and b"connection: close" in head
    values = json.loads(body)
    assert list(values) == ["error"]
    message: str = values["error"]
    return message


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"GET /health HTTP/1.1\r\n", 408, "the head did not come within 0.3 seconds"),
        (b"GET /health HTTP/1.1\r\nx: " + b"a" * 3000, 431, "the head is larger than 2000 bytes"),
        (b"nonsense\r\n\r\n", 400, "the request is not HTTP"),
        (CHUNKED + b"\r\nnonsense\r\n", 400, "the request is not HTTP"),
    ],
    ids=str,
)
def test_a_refusal_says_why(local: Any, sent: bytes, status: int, message: str) -> None:
    server = local(head=2000, head_seconds=0.3)
    with server.connect() as client:
        client.sendall(sent)
        answer = read(client)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert error(answer) == message


def test_connections_over_the_bound_are_refused_and_cost_the_others_nothing(local: Any) -> None:
    server = local(connections=2)
    with server.connect() as first, server.connect() as second:
        for client in (first, second):
            client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            assert read_status(client) == 200
        with server.connect() as third:
            answer = read(third)
        assert answer.startswith(b"HTTP/1.1 503 ") and "too many connections" in error(answer)
        first.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert read_status(first) == 200


def test_trailers_are_bounded(local: Any) -> None:
    server = local(head=2000, body=1000)
    line = b"x: " + b"y" * 95 + b"\r\n"
    with server.connect() as client:
        client.sendall(CHUNKED + b"\r\n0\r\n")
        sent = 0
        try:
            while sent < 20_000_000:
                client.sendall(line * 100)
                sent += 100 * len(line)
        except ConnectionError:
            pass
    assert sent < 20_000_000


def test_trailers_are_no_headers(local: Any) -> None:
    server = local(token=TOKEN)
    body = b'{"q": "eins", "source": "de", "target": "en"}'
    chunks = b"%x\r\n%b\r\n0\r\nauthorization: Bearer %b\r\n\r\n" % (
        len(body),
        body,
        TOKEN.encode(),
    )
    with server.connect() as client:
        client.sendall(CHUNKED + b"content-type: application/json\r\n\r\n" + chunks)
        assert read_status(client) == 403


def test_a_chunk_of_one_byte_each_is_no_offence(local: Any) -> None:
    server = local(head=500, body=1000)
    body = b'{"q": "' + b"a" * 900 + b'", "source": "de", "target": "en"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    with server.connect() as client:
        headers = b"content-type: application/json\r\nconnection: close\r\n\r\n"
        client.sendall(CHUNKED + headers + chunks + b"0\r\n\r\n")
        assert b"source language is not supported" in read(client)


def test_empty_lines_do_not_hold_a_connection(local: Any) -> None:
    server = local(head_seconds=0.3)
    with server.connect() as client:
        client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert read_status(client) == 200
        client.sendall(b"\r\n")
        assert read(client).startswith(b"HTTP/1.1 408 ")


def test_a_connection_is_closed_whose_body_is_not_read(local: Any) -> None:
    server = local(token=TOKEN)
    with server.connect() as client:
        client.sendall(b"POST /v1/translate HTTP/1.1\r\ncontent-length: 1000000000\r\n\r\n")
        answer = read(client)
    assert answer.startswith(b"HTTP/1.1 401 ") and b"connection: close" in answer


def test_a_connection_serves_several_requests(local: Any) -> None:
    server = local(head=500, body=1000)
    with server.connect() as client:
        for _ in range(100):
            client.sendall(b"GET /health HTTP/1.1\r\nx: " + b"y" * 400 + b"\r\n\r\n")
            assert read_status(client) == 200


class Transport:
    """A transport that remembers what it sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def test_an_answer_is_sent_in_one_piece() -> None:
    transport: Any = Transport()

    async def write() -> None:
        joining = Joining(transport, asyncio.get_running_loop())
        joining.write(b"head ")
        joining.write(b"body")
        await asyncio.sleep(0)
        joining.write(b"last")
        joining.close()
        joining.write(b"too late")
        await asyncio.sleep(0)

    asyncio.run(write())
    assert transport.sent == [b"head body", b"last"] and transport.closed
