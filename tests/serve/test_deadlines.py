"""Deadlines of a request: for its body, and for its translation."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from seq2see.tasks.translator import Translator

HEAD = b"POST /translate HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
PATIENCE = 8.0  # seconds after which a test gives up


def drip(client: socket.socket, part: bytes) -> bytes:
    """Send a part time and again until the server closes the connection; return its answer."""
    client.settimeout(0.05)
    until = time.monotonic() + PATIENCE
    answer = b""
    while time.monotonic() < until:
        try:
            received = client.recv(65536)
        except TimeoutError:
            client.sendall(part)
            continue
        if not received:
            return answer
        answer += received
    raise AssertionError(f"the connection is still open; answered: {answer!r}")


@pytest.mark.parametrize("part", [b"", b"a"], ids=["silence", "a byte now and then"])
def test_a_body_that_does_not_come_in_time_is_refused(local: Any, part: bytes) -> None:
    server = local(body_seconds=0.3)
    with server.connect() as client:
        client.sendall(HEAD)
        head, _, body = drip(client, part).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ") and b"connection: close" in head
    assert json.loads(body) == {"error": "the body did not come within 0.3 seconds"}


def test_a_translation_that_does_not_come_in_time_is_given_up(
    local: Any, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = threading.Event()
    search = Translator.hypotheses

    def slow(self: Translator, *arguments: Any) -> Any:
        ready.wait(PATIENCE)
        return search(self, *arguments)

    server = local(model=trained, deadline=0.3)
    monkeypatch.setattr(Translator, "hypotheses", slow)
    texts = [f"{'eins ' * length}zwei" for length in range(3)]
    for path, body in (
        ("/v1/translate", {"text": texts}),
        ("/translate", {"q": texts, "source": "de", "target": "en"}),
    ):
        response = httpx.post(server.url + path, json=body, timeout=2 * PATIENCE)
        assert response.status_code == 504
        reason = "no translation within the server's deadline of 0.3 seconds"
        assert response.json() == {"error": reason}
    assert 'seq2see_queue_sentences{model="toy"} 0.0' in httpx.get(f"{server.url}/metrics").text
    ready.set()
    response = httpx.post(f"{server.url}/v1/translate", json={"text": "zwei vier"})
    assert response.json()["translations"][0]["text"] == "two four"
