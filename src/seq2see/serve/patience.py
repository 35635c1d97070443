"""The end of a request before its answer: its client is gone, or its deadline has passed."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from seq2see.serve.batching import Ticket
from seq2see.serve.problems import ClientGone, late
from seq2see.serve.protocol import Connection


class Patience:
    """The tickets of a request, which fail when nobody waits any more."""

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []
        self._error: Exception | None = None

    def add(self, ticket: Ticket) -> None:
        """Let a ticket end with the request."""
        self._tickets.append(ticket)
        if self._error is not None:
            ticket.fail(self._error)

    def check(self) -> None:
        """Raise what ended the request, if anything did; called in any thread."""
        if self._error is not None:
            raise self._error

    def end(self, error: Exception) -> None:
        """Fail what is under way and what is still to come."""
        self._error = error
        for ticket in self._tickets:
            ticket.fail(error)


@contextmanager
def patience(request: Request, seconds: float) -> Iterator[Patience]:
    """Wait for a request's tickets until the deadline, as long as its client is there."""
    waiting = Patience()
    timer = asyncio.get_running_loop().call_later(seconds, waiting.end, late(seconds))
    connection = getattr(request.state, "connection", None)
    if isinstance(connection, Connection):
        connection.lost = lambda: waiting.end(ClientGone())
    try:
        yield waiting
    finally:
        timer.cancel()
        if isinstance(connection, Connection):
            connection.lost = None
