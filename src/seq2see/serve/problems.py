"""Problems that a client is told of: a status and one clear sentence."""

from collections.abc import Mapping


class Problem(Exception):
    """An answer other than 200; its message goes to the client and holds none of its text."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class ClientGone(Exception):
    """The client has closed the connection: nobody waits for the answer."""


def busy(seconds: int) -> Problem:
    """The queue is full."""
    return Problem(503, "the queue is full; try again later", {"Retry-After": str(seconds)})


def late(seconds: float) -> Problem:
    """The deadline has passed before the engine was done."""
    return Problem(504, f"no translation within the server's deadline of {seconds:g} seconds")


def failed() -> Problem:
    """The server has a fault."""
    return Problem(500, "the server failed; its log says more under this id")
