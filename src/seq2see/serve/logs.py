"""Structured logs: one JSON object per line on stderr, without any text of users."""

import functools
import json
import logging
import sys
import time
import traceback
from types import TracebackType
from typing import Any


def log(event: str, level: str = "info", **fields: Any) -> None:
    """Write one record."""
    _write(time.time(), level, event, fields)


def _write(moment: float, level: str, event: str, fields: dict[str, Any]) -> None:
    second, fraction = divmod(moment, 1)
    stamp = f"{_second(int(second))}.{int(1000 * fraction):03d}Z"
    values = {"time": stamp, "level": level, "event": event, **fields}
    sys.stderr.write(json.dumps(values, ensure_ascii=False) + "\n")


@functools.lru_cache(maxsize=1)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def failure(kind: type[BaseException], trace: TracebackType | None) -> dict[str, Any]:
    """Type and place of an exception; not its message, which may hold a user's text."""
    frames = traceback.extract_tb(trace)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": kind.__name__, "trace": places}


class JsonLines(logging.Handler):
    """Writes the records of libraries as ours."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {}
        if record.exc_info and record.exc_info[0]:
            fields = failure(record.exc_info[0], record.exc_info[2])
        _write(record.created, record.levelname.lower(), record.getMessage(), fields)


def take_over() -> None:
    """Write the warnings of libraries as ours."""
    root = logging.getLogger()
    root.handlers = [JsonLines()]
    root.setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # its warnings quote the body
