"""The HTTP application."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

import seq2see
from seq2see.serve import native, page
from seq2see.serve.answers import answer
from seq2see.serve.gate import Gate
from seq2see.serve.models import Models
from seq2see.serve.problems import Problem
from seq2see.serve.schemas import Status


def build(models: Models) -> Gate:
    """Build the application that serves these models."""
    app = FastAPI(
        title="seq2see",
        version=seq2see.__version__,
        description="Translation by the models that this server has loaded.",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
    )
    gate = Gate(app, models.settings.limits, models.metrics)
    app.include_router(native.routes(models))
    app.include_router(page.routes())
    _add_operation(app, models, gate)
    _add_problems(app)
    return gate


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

    @app.get("/metrics", tags=["operation"], response_class=Response)
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

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return answer({"error": f"{place or 'body'}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        response = answer({"error": str(error.detail)}, error.status_code)
        response.headers.update(error.headers or {})
        return response
