"""One HTTP/1.1 connection of a load generator: keep-alive, one request at a time, little work."""

import asyncio
import re
from dataclasses import dataclass

HEADERS_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
RETRY_AFTER = re.compile(rb"\r\nretry-after: *(\d+)", re.IGNORECASE)


class Broken(Exception):
    """The reason why a request has no answer."""


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    status: int
    body: bytes
    retry_after: float  # seconds; 0 if the server named none


class Connection(asyncio.Protocol):
    """Sends requests and cuts answers at their Content-Length."""

    def __init__(self) -> None:
        self.open = False
        self._received = bytearray()
        self._answer: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.open = True

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(HEADERS_END)
        if end < 0:
            return
        headers = bytes(self._received[: end + 2])
        length = LENGTH.search(headers)
        if length is None:
            self._fail("an answer without Content-Length")
            return
        begin = end + len(HEADERS_END)
        total = begin + int(length[1])
        if len(self._received) < total:
            return
        retry = RETRY_AFTER.search(headers)
        status = int(headers.split(b" ", 2)[1])
        body = bytes(self._received[begin:total])
        del self._received[:total]
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(status, body, float(retry[1]) if retry else 0.0))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"connection lost: {exc}" if exc else "connection closed by the server")

    async def ask(self, request: bytes) -> Answer:
        """Send a request and return its answer; raises Broken if the connection ends before."""
        if self._transport is None or not self.open:
            raise Broken("connection closed by the server")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.close()

    def _fail(self, reason: str) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Broken(reason))


async def connect(host: str, port: int) -> Connection:
    """Open a connection; raises Broken if the server does not take it."""
    try:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, host, port)
    except OSError as error:
        raise Broken(f"no connection: {error.strerror or error}") from None
    return connection


def encoded(host: str, port: int, path: str, body: bytes, token: str | None) -> bytes:
    """Return the bytes of a POST of JSON."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join(lines).encode() + HEADERS_END + body
