"""The gate around the application: bounds, request ids, security headers, logs and metrics."""

import asyncio
import itertools
import re
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from seq2see.serve.answers import answer
from seq2see.serve.hosts import Hosts
from seq2see.serve.logs import failure, log
from seq2see.serve.metrics import Metrics
from seq2see.serve.problems import ClientGone, Problem, failed
from seq2see.serve.settings import Settings
from seq2see.serve.token import bearer, equal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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
PROTECTED = ("/v1/", "/metrics")
UNAUTHORISED = {"www-authenticate": "Bearer"}
BODIES = (b"content-length", b"transfer-encoding")  # a request without them has none
CLOSE = (b"connection", b"close")
GONE = 499  # in the log alone: the client did not wait for an answer


class Gate:
    """Wraps the application; every request passes here first."""

    def __init__(self, app: App, settings: Settings, hosts: Hosts, metrics: Metrics) -> None:
        self.app = app
        self.limits = settings.limits
        self.metrics = metrics
        self._hosts = hosts
        self._token = settings.token
        self.draining = False
        self._start = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        passage = Passage(self, scope, receive, send)
        begun = time.perf_counter()
        try:
            self.check(scope["path"], scope["headers"])
            await passage.read()
            await self.app(scope, passage.receive, passage.send)
        except Problem as problem:
            await passage.refuse(problem)
        except (ClientGone, ConnectionError):
            passage.status = GONE
        except Exception:
            kind, _, trace = sys.exc_info()
            assert kind is not None
            log("failed", "error", id=passage.id, **failure(kind, trace))
            if passage.status is None:
                await passage.refuse(failed())
        seconds = time.perf_counter() - begun
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.count_request(route, passage.status)
        self.metrics.total.observe(seconds)
        log(
            "request",
            id=passage.id,
            method=scope["method"],
            route=route,
            status=passage.status,
            ms=round(1000 * seconds, 2),
        )

    def check(self, path: str, headers: Headers) -> None:
        """Refuse a request to another host, or without the token where one is needed.

        LibreTranslate's clients send it in the body, so their routes compare it themselves.
        """
        if not all(self._hosts.allow(value) for name, value in headers if name == b"host"):
            raise Problem(421, "this server does not have that host name; see --allow-host")
        if self._token is None or not path.startswith(PROTECTED):
            return
        if not equal(self._token, bearer(headers)):
            raise Problem(401, "the token is missing or wrong", UNAUTHORISED)

    def next_id(self, headers: Headers) -> str:
        """The client's X-Request-ID if it is harmless, else one of ours."""
        for name, value in headers:
            if name == b"x-request-id" and SAFE_ID.fullmatch(value):
                return value.decode()
        return f"{self._start}-{next(self._numbers)}"


class Passage:
    """One request on its way through the gate."""

    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send) -> None:
        self.gate = gate
        self.id = gate.next_id(scope["headers"])
        self.status: int | None = None
        self._headers: Headers = scope["headers"]
        self._receive = receive
        self._send = send
        self._body: bytes | None = None
        self._unread = any(name in BODIES for name, _ in self._headers)

    async def read(self) -> None:
        """Read the body, within the bounds of size and time."""
        limits = self.gate.limits
        if not self._unread:
            return
        begun = time.perf_counter()
        if any(
            name == b"content-length" and int(value) > limits.body for name, value in self._headers
        ):
            raise Problem(413, f"the body is larger than {limits.body} bytes")
        body = b""
        try:
            async with asyncio.timeout(limits.body_seconds):
                while self._unread:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    body += message.get("body", b"")
                    if len(body) > limits.body:
                        raise Problem(413, f"the body is larger than {limits.body} bytes")
                    self._unread = message.get("more_body", False)
        except TimeoutError:
            rule = f"the body did not come within {limits.body_seconds:g} seconds"
            raise Problem(408, rule) from None
        self._body = body
        self.gate.metrics.reading.observe(time.perf_counter() - begun)

    async def receive(self) -> Message:
        """Hand the body on, whole; then wait for the client to go."""
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"] = [*message["headers"], *SECURITY]
            headers.append((b"x-request-id", self.id.encode()))
            # What is left of a body that was not read would be taken for the next request.
            if self.gate.draining or self._unread:
                headers.append(CLOSE)
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with an error."""
        response = answer({"error": problem.message}, problem.status)
        response.headers.update(problem.headers)
        start = {"type": "http.response.start", "status": problem.status}
        await self.send(start | {"headers": response.raw_headers})
        await self.send({"type": "http.response.body", "body": response.body})
