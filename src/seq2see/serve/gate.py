"""The gate around the application: bounds, request ids, security headers, logs and metrics."""

import asyncio
import itertools
import logging
import re
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from seq2see.serve.logs import failure, log
from seq2see.serve.metrics import Metrics
from seq2see.serve.problems import ClientGone, Problem
from seq2see.serve.settings import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

SAFE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SECURITY = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
CLOSE = (b"connection", b"close")
GONE = 499  # in the log alone: the client did not wait for an answer


class Gate:
    """Wraps the application; every request passes here first."""

    def __init__(self, app: App, limits: Limits, metrics: Metrics) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.draining = False
        self._start = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        passage = Passage(self, scope, receive, send)
        begun = time.perf_counter()
        try:
            await self.app(scope, passage.receive, passage.send)
        except (ClientGone, ConnectionError):
            passage.status = GONE
        except Exception:
            kind, _, trace = sys.exc_info()
            assert kind is not None
            log("failed", logging.ERROR, id=passage.id, **failure(kind, trace))
            if passage.status is None:
                await passage.refuse(500, "the server failed; its log says more under this id")
        seconds = time.perf_counter() - begun
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(route, passage.status).inc()
        self.metrics.total.observe(seconds)
        log(
            "request",
            id=passage.id,
            method=scope["method"],
            route=route,
            status=passage.status,
            ms=round(1000 * seconds, 2),
        )

    def next_id(self, headers: list[tuple[bytes, bytes]]) -> str:
        """The client's X-Request-ID if it is harmless, else one of ours."""
        for name, value in headers:
            if name == b"x-request-id" and SAFE_ID.fullmatch(value):
                return value.decode()
        return f"{self._start}-{next(self._numbers)}"


class Passage:
    """One request on its way through the gate."""

    def __init__(
        self, gate: Gate, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self.gate = gate
        self.id = gate.next_id(scope["headers"])
        self.status: int | None = None
        self._receive = receive
        self._send = send
        self._read = 0
        self._until: float | None = None
        self._complete = False
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        self._announced = int(lengths[0]) if lengths and lengths[0].isdigit() else 0

    async def receive(self) -> Message:
        """Receive a part of the body, within the bounds of size and time."""
        limits = self.gate.limits
        if self._announced > limits.body:
            raise Problem(413, f"the body is larger than {limits.body} bytes")
        if self._complete:
            return await self._receive()
        now = time.perf_counter()
        self._until = self._until or now + limits.body_seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._until - now)
        except TimeoutError:
            rule = f"the body did not come within {limits.body_seconds:g} seconds"
            raise Problem(408, rule) from None
        self._read += len(message.get("body", b""))
        if self._read > limits.body:
            raise Problem(413, f"the body is larger than {limits.body} bytes")
        if not message.get("more_body", False):
            self._complete = True
            self.gate.metrics.reading.observe(time.perf_counter() - now)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer; a client that does not read it is left."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"] = [*message["headers"], *SECURITY]
            headers.append((b"x-request-id", self.id.encode()))
            # What is left of a body that was not read would be taken for the next request.
            if self.gate.draining or (not self._complete and self.status >= 400):
                headers.append(CLOSE)
        try:
            await asyncio.wait_for(self._send(message), self.gate.limits.send_seconds)
        except TimeoutError:
            raise ClientGone from None

    async def refuse(self, status: int, message: str) -> None:
        """Answer with an error."""
        from seq2see.serve.answers import answer

        response = answer({"error": message}, status)
        await self.send(
            {"type": "http.response.start", "status": status, "headers": response.raw_headers}
        )
        await self.send({"type": "http.response.body", "body": response.body})
