"""Random requests: no failure of the server, whatever is sent."""

import random
from typing import Any

ROUTES = ("/v1/translate", "/v1/score", "/translate", "/detect")
KINDS = ("application/json", "application/x-www-form-urlencoded", "text/plain", "", "multipart/x")
PARTS = [
    *'{}[]",:0',
    '"text"',
    '"q"',
    '"source"',
    '"target"',
    '"de"',
    "null",
    "true",
    "-1e999",
    "\\ud800",
    "drei",
    "&q=eins",
    "%ff",
    "\0",
    "漢",
]


def test_random_bodies_are_answered(server: Any) -> None:
    draw = random.Random("bodies")
    for number in range(400):
        route, kind = draw.choice(ROUTES), draw.choice(KINDS)
        body = "".join(draw.choices(PARTS, k=draw.randrange(12))).encode()
        if number % 4 == 0:
            body = draw.randbytes(draw.randrange(40))
        response = server.client.post(route, content=body, headers={"content-type": kind})
        assert response.status_code < 500, (route, kind, body)
        if response.status_code != 200:
            assert list(response.json()) == ["error"]
