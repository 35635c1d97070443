"""Answers in JSON."""

import json
from typing import Any

from fastapi.responses import Response

from seq2see.serve.schemas import Refused

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refused, "description": "The body is not what was announced."},
    401: {"model": Refused, "description": "The token is missing or wrong."},
    408: {"model": Refused, "description": "The body came too slowly."},
    413: {"model": Refused, "description": "The body or its texts are too large."},
    421: {"model": Refused, "description": "The server does not have this host name."},
    422: {"model": Refused, "description": "A value breaks a rule, which is named."},
    500: {"model": Refused, "description": "The server failed."},
    503: {"model": Refused, "description": "The queue is full; Retry-After says for how long."},
    504: {"model": Refused, "description": "The deadline has passed."},
}


def answer(values: Any, status: int = 200) -> Response:
    """Answer in JSON, without a second validation of what we have made ourselves."""
    content = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, media_type="application/json")
