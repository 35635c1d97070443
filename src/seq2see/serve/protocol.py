"""HTTP connections that do not wait for slow clients, and that tell when a client is gone."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from seq2see.serve.answers import answer
from seq2see.serve.settings import Limits

CHUNKING = 8  # bytes sent for a byte of a body, at most: a chunk of one byte takes six


class Joining:
    """A transport that sends together what is written in one turn of the event loop.

    Uvicorn writes the head of an answer and its body separately.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send after everything else that is written in this turn."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Close after the last byte."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts.clear()


class Connection(HttpToolsProtocol):
    """A connection whose request heads are bounded in size and time, and unread answers in time.

    `limits` is set on a subclass, since uvicorn makes the instances.
    """

    limits = Limits()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lost: Callable[[], None] | None = None  # called when the client goes
        self._received = 0  # bytes of the request that is being read
        self._head = 0  # bytes of its head
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joining(transport, self.loop))  # type: ignore[arg-type]
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "the server has too many connections; try again later")
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()
        if self._unread is not None:
            self._unread.cancel()
        if self.lost is not None:
            self.lost()

    def data_received(self, data: bytes) -> None:
        # Empty lines between two requests begin no message, but end uvicorn's own timer.
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()
        self._received += len(data)
        if self._timer is not None:
            self._head += len(data)
        super().data_received(data)
        if self._received > self.limits.head + CHUNKING * self.limits.body:
            self.transport.abort()
        elif self._timer is not None and self._head > self.limits.head:
            self._refuse(431, f"the head is larger than {self.limits.head} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._received = 0
        self._start_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._timer is not None:  # else it is a trailer: the head is complete
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not HTTP")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            seconds = self.limits.send_seconds
            self._unread = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _start_timer(self) -> None:
        if self._timer is None:
            self._head = 0
            seconds = self.limits.head_seconds
            error = f"the head did not come within {seconds:g} seconds"
            self._timer = self.loop.call_later(seconds, self._refuse, 408, error)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, error: str) -> None:
        """Answer, unless an earlier answer is still to come, and close."""
        self._stop_timer()
        if not self.transport.is_closing():
            if self._in_turn():
                response = answer({"error": error}, status)
                headers = [*response.raw_headers, (b"connection", b"close")]
                lines = [b"%b: %b\r\n" % header for header in headers]
                head = STATUS_LINE[status] + b"".join(lines)
                self.transport.write(head + b"\r\n" + bytes(response.body))
            self.transport.close()

    def _in_turn(self) -> bool:
        """Whether the next answer is that to the request which is being read."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return self.cycle.more_body and not self.cycle.response_started and not self.pipeline
