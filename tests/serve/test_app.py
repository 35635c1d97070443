"""The application's answers to what goes wrong."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from seq2see.serve.models import Models


def test_a_failure_is_an_error_like_any_other(
    local: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Models) -> Iterator[Any]:
        raise RuntimeError("a secret")

    server = local()
    monkeypatch.setattr(Models, "__iter__", broken)
    response = httpx.get(f"http://127.0.0.1:{server.port}/v1/models")
    assert response.status_code == 500
    assert response.json() == {"error": "the server failed; its log says more under this id"}
    server.stop()
    log = capsys.readouterr().err
    assert response.headers["x-request-id"] in log
    assert "RuntimeError" in log and "a secret" not in log
