"""The page at /: its files are read once, at the start, and found by name."""

import hashlib
from importlib import resources

from fastapi import APIRouter, Request
from fastapi.responses import Response

from seq2see.serve.problems import Problem

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}


def routes() -> APIRouter:
    """Build the routes of the page's files: / and /page/NAME."""
    router = APIRouter(include_in_schema=False)
    folder = resources.files("seq2see.serve") / "page"
    files: dict[str, tuple[bytes, str, str]] = {}
    if folder.is_dir():
        for file in folder.iterdir():
            kind = TYPES.get(file.name.rpartition(".")[2])
            if kind is not None:
                content = file.read_bytes()
                files[file.name] = (content, kind, f'"{hashlib.sha256(content).hexdigest()[:16]}"')

    def send(request: Request, name: str) -> Response:
        if name not in files:
            raise Problem(404, "there is no such page")
        content, kind, tag = files[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    @router.get("/")
    async def index(request: Request) -> Response:
        return send(request, "index.html")

    @router.get("/page/{name}")
    async def named(request: Request, name: str) -> Response:
        return send(request, name)

    return router
