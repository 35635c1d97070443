"""A client of the server, for the command line; it needs the standard library alone."""

import http.client
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from seq2see.errors import InputError, WorkError
from seq2see.serve.settings import TOKEN

TEXTS, CHARACTERS = 200, 50_000  # of a request
SECONDS = 120.0
TRIES = 10  # while the queue of the server is full
PATIENCE = 30.0  # seconds between two tries, at most
CLIENT_ERRORS = range(400, 500)


class Client:
    """A server, and what it is sent with every request."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        wrong = InputError(f"--server {url}: must be a URL such as http://127.0.0.1:8000")
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise wrong
        https = parts.scheme == "https"
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        self._connection = kind(parts.hostname, port, timeout=SECONDS)
        self._path = f"{parts.path}/v1/translate"
        self._headers = {"Content-Type": "application/json"}
        if token := os.environ.get(TOKEN):
            self._headers["Authorization"] = f"Bearer {token.strip()}"

    def translate(self, texts: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """Translate texts; return the server's answer for each."""
        rows: list[dict[str, Any]] = []
        for some in portions(texts):
            given = {key: value for key, value in options.items() if value is not None}
            rows += self._post({"text": some, **given})["translations"]
        return rows

    def _post(self, values: dict[str, Any]) -> Any:
        body = json.dumps(values).encode()
        seconds = 0.0
        for _ in range(TRIES):
            time.sleep(seconds)
            try:
                self._connection.request("POST", self._path, body, self._headers)
                response = self._connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise WorkError(f"{self.url}: {error or type(error).__name__}") from None
            finally:
                self._connection.close()  # before the next line comes, the server may do so
            wait = response.getheader("Retry-After")
            if response.status != http.client.SERVICE_UNAVAILABLE or wait is None:
                break
            seconds = min(PATIENCE, float(wait)) if wait.isdecimal() else PATIENCE
        try:
            answer = json.loads(content)
            if response.status == http.client.OK:
                return answer
            reason = answer["error"]
        except (ValueError, KeyError, TypeError):
            reason = f"not a server of seq2see: it answered {response.status}"
        kind = InputError if response.status in CLIENT_ERRORS else WorkError
        raise kind(f"{self.url}: {reason}")


def portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Divide texts into requests within the bounds of a server."""
    portion: list[str] = []
    characters = 0
    for text in texts:
        if portion and (len(portion) == TEXTS or characters + len(text) > CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(text)
        characters += len(text)
    if portion:
        yield portion
