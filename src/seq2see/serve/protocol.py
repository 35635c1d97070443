"""HTTP connections that do not wait for slow clients, and that tell when a client is gone."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seq2see.serve.settings import Limits

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"
ENDING = b"content-length: 0\r\nconnection: close\r\n\r\n"
CHUNKING = 8  # bytes sent for a byte of a body, at most: a chunk of one byte takes six


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
        super().connection_made(transport)
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
            self._refuse(TOO_LARGE)

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
            self._timer = self.loop.call_later(self.limits.head_seconds, self._refuse, TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes) -> None:
        """Answer, unless an earlier answer is still being written, and close."""
        self._stop_timer()
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(status + ENDING)
            self.transport.close()
