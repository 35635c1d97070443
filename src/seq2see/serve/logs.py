"""Structured logs: one JSON object per line on stderr, without any text of users."""

import json
import logging
import sys
import time
import traceback
from types import TracebackType
from typing import Any

logger = logging.getLogger("seq2see.serve")


class JsonLines(logging.Formatter):
    """Formats a record and the fields under `fields` as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        values: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        values |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0]:
            values |= failure(record.exc_info[0], record.exc_info[2])
        return json.dumps(values, ensure_ascii=False)


def failure(kind: type[BaseException], trace: TracebackType | None) -> dict[str, Any]:
    """Type and place of an exception; not its message, which may hold a user's text."""
    frames = traceback.extract_tb(trace)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": kind.__name__, "trace": places}


def start() -> None:
    """Send our records, and uvicorn's warnings, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("seq2see.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        target = logging.getLogger(name)
        target.handlers = [handler]
        target.setLevel(level)
        target.propagate = False


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write one record."""
    logger.log(level, event, extra={"fields": fields})
