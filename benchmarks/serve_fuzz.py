"""Random requests to every route of a server: no failure, no hang, no traceback for a client.

    python benchmarks/serve_fuzz.py --model runs/demo --name "the demo's model"

Most bodies are a valid request with some keys and values replaced by hostile ones, and some of
their bytes; others are random bytes. GET routes are sent a body and a random query, too. Writes
`results/serve-fuzz.json`; exits with 1 if an answer was wrong.
"""

import argparse
import contextlib
import datetime
import http.client
import itertools
import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from seq2see.bench.serve import command
from seq2see.bench.server_process import Server, serving
from seq2see.scoring.card import machine

RESULTS = Path(__file__).parent / "results"
POSTS: dict[str, dict[str, Any]] = {  # and a valid request
    "/v1/translate": {"text": "Ein Hund.", "beam": 2, "n_best": 1, "format": "text"},
    "/v1/score": {"source": ["Ein Hund."], "target": ["A dog."]},
    "/translate": {"q": "Ein Hund.", "source": "auto", "target": "en", "alternatives": 1},
    "/detect": {"q": "Ein Hund."},
}
LOOK = {"text": "drei acht", "beam": 2, "off": []}
HEAD = {"layer": "decoder.0.cross", "head": 0}
LOOKS: dict[str, dict[str, Any]] = {  # the same, of the routes that look inside a model
    "/v1/explore/translate": {**LOOK, "n_best": 1, "forbidden": []},
    "/v1/explore/attention": LOOK,
    "/v1/explore/head": LOOK | HEAD,
    "/v1/explore/heads": LOOK,
    "/v1/explore/beam": {**LOOK, "length_penalty": 0.6, "forbidden": []},
    "/v1/explore/layers": LOOK,
    "/v1/explore/anatomy": LOOK,
    "/v1/explore/by-hand": LOOK | HEAD | {"query": 0},
    "/v1/explore/training": LOOK | HEAD,
    "/v1/explore/attribution": LOOK | {"method": "erasure"},
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
OTHERS: dict[str, dict[str, Any]] = {  # the same, in models that do not translate
    "/v1/explore/next": {"text": "two four", "model": "writer"},
    "/v1/explore/blanks": {"text": "two <mask>", "model": "filler"},
    "/v1/explore/label": {"text": "two four", "model": "labeller"},
    "/v1/explore/picture": {"picture": PIXEL, "model": "pictured"},
}
POSTS |= LOOKS | OTHERS
GETS = [
    "/",
    "/page/{name}",
    "/v1/models",
    "/v1/explore",
    "/languages",
    "/frontend/settings",
    "/spec",
]
GETS += ["/openapi.json", "/health", "/ready", "/metrics"]
ROUTES = [*POSTS, *GETS]
KINDS = ["application/json"] * 12 + ["application/x-www-form-urlencoded"] * 3
KINDS += ["multipart/form-data; boundary=x", "multipart/form-data", "text/plain", "", "\xff/;=;"]
KEYS = ["text", "q", "source", "target", "model", "beam", "n_best", "prefix", "glossary", "format"]
KEYS += ["alternatives", "api_key", "off", "layer", "head", "", "\0", "__class__"]
TEXTS = [
    "",
    " ",
    "\0",
    "\ud800",
    "eins zwei. " * 40,
    "漢字。" * 9,
    "🏳️‍🌈",
    "\r\n\x85\u2028",
    "auto",
    "de",
]
TEXTS += [
    "<p>a <b>b</p></b>",
    "<!--",
    "&#0;&amp",
    "{x} %s 1.000,5",
    "../../etc/passwd",
    "html",
    "(" * 99,
]
NUMBERS = [0, -1, 1, 2.5, 16, 17, 1e999, -1e999, float("nan"), 10**40, True, None]
PARTS = [
    *'{}[]",:0\\',
    '"q":',
    '"text":',
    "null",
    "-1e999",
    "\\ud800",
    "&q=eins",
    "%ff",
    "%",
    "--x\r\n",
]
PARTS += ["\0", "漢", "\r\n\r\n", 'Content-Disposition: form-data; name="q"', "[" * 3000]
SECONDS = 20.0  # after which a request without an answer counts as a hang
CONNECTIONS = 8


class Request(NamedTuple):
    """A request, and what it is drawn for."""

    route: str
    target: str
    kind: str
    body: bytes

    @property
    def method(self) -> str:
        return "POST" if self.route in POSTS else "GET"


class Answer(NamedTuple):
    """A status, the seconds until the answer was complete, and what is wrong with it, if anything."""

    status: int
    seconds: float
    wrong: str | None


def request(route: str, number: int) -> Request:
    """Draw a request to a route; the same for the same number."""
    draw = random.Random(f"{route} {number}")
    kind = draw.choice(KINDS)
    target = route.format(name=quote(draw.choice(TEXTS), safe="", errors="replace") + "x")
    if draw.random() < 0.2:
        target += "?" + quote(
            "".join(draw.choices([*TEXTS, "q=", "&"], k=4)), "=&", errors="replace"
        )
    return Request(route, target, kind, _body(draw, POSTS.get(route, {}), "form-url" in kind))


def _body(draw: random.Random, valid: dict[str, Any], form: bool) -> bytes:
    chance = draw.random()
    if chance < 0.1:
        return draw.randbytes(draw.randrange(60))
    if chance < 0.25:
        return "".join(draw.choices(PARTS, k=draw.randrange(12))).encode()
    values = dict(valid)
    for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
        values[draw.choice([*valid, *KEYS])] = _value(draw, depth=0)
    if draw.random() < 0.1 and values:
        del values[draw.choice(list(values))]
    written = urlencode(values, errors="replace") if form else json.dumps(values)
    body = bytearray(written.encode())
    for _ in range(draw.choice([0, 0, 0, 1, 3])):
        place = draw.randrange(len(body) + 1)
        body[place : place + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
    return bytes(body)


def _value(draw: random.Random, depth: int) -> Any:
    chance = draw.random()
    if depth < 3 and chance < 0.15:
        return [_value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if depth < 3 and chance < 0.3:
        return {draw.choice([*TEXTS, *KEYS]): _value(draw, depth + 1) for _ in range(2)}
    return draw.choice(TEXTS if chance < 0.7 else NUMBERS)


def ask(connection: http.client.HTTPConnection, asked: Request) -> Answer:
    """Send a request; judge its answer."""
    begun = time.perf_counter()
    try:
        headers = {"content-type": asked.kind}
        connection.request(asked.method, asked.target, asked.body, headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return Answer(0, time.perf_counter() - begun, repr(error))
    return Answer(response.status, time.perf_counter() - begun, wrong(response.status, content))


def wrong(status: int, content: bytes) -> str | None:
    """Tell what is wrong with an answer, if anything."""
    if status >= 500:
        return f"status {status}"
    if b"Traceback" in content or b'.py"' in content:
        return "a traceback"
    if status < 400:
        return None
    try:
        keys = list(json.loads(content))
    except (ValueError, TypeError):
        return f"status {status} without JSON"
    return None if keys == ["error"] else f"status {status} with the keys {keys}"


def fuzz(server: Server, route: str, count: int) -> dict[str, Any]:
    """Send requests to a route over several connections; return what came of them."""

    def some(first: int) -> list[tuple[int, Answer]]:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=SECONDS)
        with contextlib.closing(connection):
            numbers = range(first, count, CONNECTIONS)
            return [(number, ask(connection, request(route, number))) for number in numbers]

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        parts = list(pool.map(some, range(CONNECTIONS)))
    answers = [answer for _, answer in sorted(itertools.chain(*parts))]
    failures = [(number, answer.wrong) for number, answer in enumerate(answers) if answer.wrong]
    statuses = Counter(answer.status for answer in answers)
    return {
        "route": route,
        "requests": count,
        "statuses": {str(status): statuses[status] for status in sorted(statuses)},
        "longest_seconds": max(answer.seconds for answer in answers),
        "failures": failures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--name", required=True, help="of the model, for the table")
    parser.add_argument("--requests", type=int, default=10_000, help="to each route")
    parser.add_argument("--looks", type=int, default=1_000, help="to each that looks inside")
    parser.add_argument("--out", type=Path, default=RESULTS / "serve-fuzz.json")
    options = parser.parse_args()
    rows = []
    with serving(command(options.model)) as server:
        for route in ROUTES:
            inside = route in LOOKS or route in OTHERS
            count = options.looks if inside else options.requests
            rows.append(fuzz(server, route, count))
            print(json.dumps(rows[-1] | {"failures": rows[-1]["failures"][:3]}), flush=True)
    result = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "model": options.name,
        "rows": rows,
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if any(row["failures"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
