"""Random requests: no failure of the server, whatever is sent."""

from typing import Any

import pytest
from serve_fuzz import GETS, LOOKS, OTHERS, POSTS, ROUTES, fuzz, request, wrong

from seq2see.bench.server_process import Server

COUNTS = dict.fromkeys(POSTS, 300) | dict.fromkeys(GETS, 40)
COUNTS |= dict.fromkeys([*LOOKS, *OTHERS], 100)


def test_random_requests_are_answered(server: Any) -> None:
    looks = server.client.get("/v1/explore").json()["models"][0]["available"]
    for route in ROUTES:
        row = fuzz(Server("127.0.0.1", server.port, None), route, COUNTS[route])
        assert row["failures"] == []
        assert sum(row["statuses"].values()) == COUNTS[route]
        answered = route not in OTHERS and (route not in LOOKS or looks)
        if route in POSTS and answered:
            accepted = row["statuses"]["200"] / COUNTS[route]
            assert 0.03 < accepted < 0.7  # neither all refused nor all accepted
    assert server.translate("zwei vier") == ["two four"]


@pytest.mark.parametrize("route", OTHERS)
def test_random_requests_to_models_that_do_not_translate(mixed: Any, route: str) -> None:
    row = fuzz(Server("127.0.0.1", mixed.port, None), route, COUNTS[route])
    assert row["failures"] == []
    assert 0.03 < row["statuses"]["200"] / COUNTS[route] < 0.7


def test_every_route_of_the_description_is_asked(server: Any) -> None:
    paths = server.client.get("/openapi.json").json()["paths"]
    assert {path: [*operations] for path, operations in paths.items()} == {
        route: ["post" if route in POSTS else "get"] for route in paths.keys() & set(ROUTES)
    }


def test_a_request_is_drawn_by_its_number() -> None:
    drawn = [request("/translate", number) for number in range(50)]
    assert drawn == [request("/translate", number) for number in range(50)]
    assert len({asked.body for asked in drawn}) > 40


@pytest.mark.parametrize(
    ("status", "content", "reason"),
    [
        (200, b"anything", None),
        (422, b'{"error": "a"}', None),
        (500, b'{"error": "a"}', "status 500"),
        (200, b"Traceback (most recent call last)", "a traceback"),
        (400, b'{"error": "a", "b": 1}', "status 400 with the keys ['error', 'b']"),
        (404, b"Not found", "status 404 without JSON"),
    ],
)
def test_an_answer_is_judged(status: int, content: bytes, reason: str | None) -> None:
    assert wrong(status, content) == reason
