"""The short way of well-formed requests: its answers are those of FastAPI."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from fastapi import FastAPI

from seq2see.serve import native
from seq2see.serve.direct import Direct

DIRECT = "application/json"
BY_FASTAPI = "application/json; charset=utf-8"
BODIES: list[tuple[str, str | bytes, int]] = [
    ("/v1/translate", '{"text": "drei acht eins"}', 200),
    ("/v1/translate", '{"text": ["zwei", ""], "beam": 3.0, "n_best": 2, "source": null}', 200),
    ("/v1/translate", '{"text": "drei acht", "prefix": "five", "glossary": {"zwei": "two"}}', 200),
    ("/v1/translate", '{"text": "zwei", "beam": 17}', 422),
    ("/v1/translate", '{"text": "zwei", "glossary": {"a": "b\\nc"}}', 422),
    ("/v1/translate", '{"text": "zwei", "words": 1}', 422),
    ("/v1/translate", '{"text": "zwei", "n_best": NaN}', 422),
    ("/v1/translate", '{"text": "\\ud800"}', 422),
    ("/v1/translate", '{"text": ', 422),
    ("/v1/translate", "[" * 100_000, 400),
    ("/v1/translate", "null", 422),
    ("/v1/translate", "", 422),
    ("/v1/translate", b"\xff", 400),
    ("/v1/score", '{"source": ["zwei"], "target": ["two"]}', 200),
    ("/v1/score", '{"source": ["zwei"], "target": []}', 422),
]


@pytest.fixture
def toy(local: Any, trained: Path) -> Any:
    """A server whose log is complete once it is stopped."""
    return local(model=trained)


def post(toy: Any, path: str, body: str | bytes, kind: str) -> httpx.Response:
    return httpx.post(toy.url + path, content=body, headers={"Content-Type": kind}, timeout=30)


def test_both_ways_answer_alike(toy: Any) -> None:
    for path, body, status in BODIES:
        direct, by_fastapi = (post(toy, path, body, kind) for kind in (DIRECT, BY_FASTAPI))
        assert direct.status_code == status, (body[:50], direct.text)
        for answer in (direct, by_fastapi):
            assert answer.headers.pop("x-request-id")
            answer.headers.pop("date", None)
        assert direct.status_code == by_fastapi.status_code
        assert direct.headers == by_fastapi.headers
        assert direct.json() == by_fastapi.json()


def test_a_well_formed_request_does_not_pass_fastapi(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError

    path, body, _ = BODIES[0]
    monkeypatch.setattr(FastAPI, "__call__", broken)
    assert post(toy, path, body, DIRECT).status_code == 200
    assert post(toy, path, body, BY_FASTAPI).status_code == 500


def test_other_scopes_than_requests_are_handed_on() -> None:
    passed: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope)

    scope = {"type": "lifespan"}
    unused: Any = None
    asyncio.run(Direct(app, [])(scope, unused, unused))
    assert passed == [scope]


def test_a_failure_is_answered_and_logged_without_its_message(
    toy: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a secret")

    path, body, _ = BODIES[0]
    monkeypatch.setattr(native, "translate_texts", broken)
    direct, by_fastapi = (post(toy, path, body, kind) for kind in (DIRECT, BY_FASTAPI))
    toy.stop()
    assert direct.status_code == by_fastapi.status_code == 500
    assert direct.json() == by_fastapi.json()
    log = capsys.readouterr().err
    assert direct.headers["x-request-id"] in log
    assert log.count("RuntimeError") == 2 and "a secret" not in log


def test_the_log_names_the_route(toy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path, body, _ = BODIES[0]
    for kind in (DIRECT, BY_FASTAPI):
        post(toy, path, body, kind)
    toy.stop()
    assert capsys.readouterr().err.count('"route": "/v1/translate"') == 2
