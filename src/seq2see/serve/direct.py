"""A short way for well-formed requests: FastAPI takes as long as the rest of the server's own work.

FastAPI still describes these routes, and answers every request that is not JSON of the right form.
"""

import json
from collections.abc import Iterable

from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.routing import BaseRoute

from seq2see.errors import InputError
from seq2see.serve.gate import App, Headers, Message, Receive, Scope, Send
from seq2see.serve.problems import Problem
from seq2see.serve.schemas import ScoreRequest, TranslateRequest

BODIES: dict[str, type[BaseModel]] = {
    "/v1/translate": TranslateRequest,
    "/v1/score": ScoreRequest,
}
JSON = b"application/json"


class Direct:
    """Wraps FastAPI; hands well-formed bodies straight to the functions of their routes."""

    def __init__(self, app: App, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = {
            route.path: route
            for route in routes
            if isinstance(route, APIRoute) and route.path in BODIES
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get(scope.get("path", ""))  # a lifespan has none
        if route is None or scope.get("method") != "POST" or not _is_json(scope["headers"]):
            return await self._app(scope, receive, send)
        message = await receive()  # the whole body: the gate has read it
        asked = _read(BODIES[route.path], message.get("body", b""))
        if asked is None:
            return await self._app(scope, _again(message, receive), send)
        scope["route"] = route
        try:
            response = await route.endpoint(Request(scope), asked)
        except InputError as error:
            raise Problem(422, str(error)) from None
        await response(scope, receive, send)


def _is_json(headers: Headers) -> bool:
    """Tell whether a body is announced as JSON, with nothing else in the header."""
    return next((value for name, value in headers if name == b"content-type"), b"") == JSON


def _read(model: type[BaseModel], body: bytes) -> BaseModel | None:
    """Read a body as FastAPI does; None if anything is wrong with it."""
    try:
        return model.model_validate(json.loads(body))
    except (ValueError, RecursionError):  # a ValidationError is a ValueError
        return None


def _again(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that begins with a message that has been taken already."""
    messages = [message]

    async def first() -> Message:
        return messages.pop() if messages else await receive()

    return first
