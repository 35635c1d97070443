"""The HTTP application."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import seq2see
from seq2see.errors import InputError
from seq2see.serve import explore, libretranslate, native, page
from seq2see.serve.answers import answer
from seq2see.serve.direct import Direct
from seq2see.serve.gate import Gate
from seq2see.serve.hosts import Hosts
from seq2see.serve.models import Models
from seq2see.serve.problems import Problem, failed
from seq2see.serve.schemas import Refused, Status
from seq2see.serve.token import described


def build(models: Models, hosts: Hosts) -> tuple[Any, Gate]:
    """Build the application that serves these models, and the gate inside it."""
    settings = models.settings
    app = FastAPI(
        title="seq2see",
        version=seq2see.__version__,
        description="Translation by the models that this server has loaded.",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
    )
    translation = native.routes(models)
    gate = Gate(Direct(app, translation.routes), settings, hosts, models.metrics)
    app.include_router(translation)
    app.include_router(explore.routes(models))
    app.include_router(libretranslate.routes(models, app.openapi))
    app.include_router(page.routes())
    _add_operation(app, models, gate)
    _add_problems(app)
    if not settings.origins:
        return gate, gate
    allowed: dict[str, Any] = {
        "allow_origins": settings.origins,
        "allow_methods": ["GET", "POST"],
        "allow_headers": ["authorization", "content-type", "x-request-id"],
        "expose_headers": ["retry-after", "x-request-id"],
    }
    return CORSMiddleware(gate, **allowed), gate


def _add_operation(app: FastAPI, models: Models, gate: Gate) -> None:
    @app.get("/health", response_model=Status, tags=["operation"])
    async def health() -> Response:
        """Whether the process is alive."""
        return answer({"status": "ok"})

    @app.get(
        "/ready", response_model=Status, tags=["operation"], responses={503: {"model": Status}}
    )
    async def ready() -> Response:
        """Whether requests are taken: not while the server drains."""
        if gate.draining:
            return answer({"status": "draining"}, 503)
        return answer({"status": "ready"})

    @app.get(
        "/metrics",
        tags=["operation"],
        response_class=Response,
        responses={401: {"model": Refused}, 421: {"model": Refused}},
        dependencies=described(models.settings.token),
    )
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(generate_latest(models.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_problems(app: FastAPI) -> None:
    """Answer every error as {"error": …}."""

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        response = answer({"error": error.message}, error.status)
        response.headers.update(error.headers)
        return response

    @app.exception_handler(InputError)
    async def wrong_input(request: Request, error: InputError) -> Response:
        return answer({"error": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return answer({"error": f"body: not JSON: {first['ctx']['error']}"}, 422)
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return answer({"error": f"{place or 'body'}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        response = answer({"error": str(error.detail)}, error.status_code)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def failure(request: Request, error: Exception) -> Response:
        problem = failed()
        return answer({"error": problem.message}, problem.status)
