"""`seq2see translate --server`: lines out for lines in, through a server."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import WorkError
from seq2see.serve import client
from seq2see.serve.client import CHARACTERS, TEXTS, Client, portions


def run(*arguments: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "seq2see", "translate", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


def test_lines_come_back_one_for_one(server: Any) -> None:
    done = run("--server", server.url, stdin="drei acht eins\n\nzwei vier\n" * 300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "three eight one\n\ntwo four\n" * 300


def test_the_formats_are_those_of_a_model_directory(server: Any, trained: Path) -> None:
    done = run("drei acht eins", "--server", server.url, "--n-best", 2, "--model", "toy")
    first, second = done.stdout.splitlines()
    assert first.startswith("0 ||| three eight one ||| -") and second.startswith("0 ||| ")
    for n_best in (1, 2):
        options = ("zwei vier", "--json", "--beam", 2, "--n-best", n_best)
        ours = json.loads(run(*options, "--server", server.url).stdout)
        theirs = json.loads(run(*options, "--model", trained).stdout)
        assert list(ours) == list(theirs) and ours["source"] == "zwei vier"
        for one, another in zip(ours["translations"], theirs["translations"], strict=True):
            assert list(one) == list(another)
        best, expected = ours["translations"][0], theirs["translations"][0]
        assert best["text"] == expected.pop("text")
        assert {key: best[key] for key in expected} == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["eins", "--server", "{url}", "--beam", 60], 2, "beam is 60; at most 16 is allowed"),
        (["eins", "--server", "{url}", "--model", "other"], 2, "model is not one of toy"),
        (["eins", "--server", "{url}", "--engine", "torch"], 2, "settings of the server"),
        (["eins", "--server", "ftp://x"], 2, "must be a URL such as http://"),
        (["eins", "--server", "http://[::1"], 2, "must be a URL such as http://"),
        (["eins", "--server", "http://x:99999"], 2, "must be a URL such as http://"),
        (["eins", "--server", "http://127.0.0.1:9"], 1, "http://127.0.0.1:9: "),
        (["eins"], 2, "--model DIR or --server URL is needed"),
    ],
    ids=str,
)
def test_an_error_is_one_line(server: Any, arguments: list[Any], code: int, message: str) -> None:
    done = run(*(str(argument).format(url=server.url) for argument in arguments))
    assert done.returncode == code and message in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_portions_keep_all_texts_within_the_bounds() -> None:
    texts = ["a" * length for length in [CHARACTERS, 1, CHARACTERS + 1, *[7] * 500]]
    divided = list(portions(texts))
    assert [text for portion in divided for text in portion] == texts
    for portion in divided:
        assert len(portion) <= TEXTS
        assert sum(map(len, portion)) <= CHARACTERS or len(portion) == 1
    assert list(portions([])) == []


class Busy(BaseHTTPRequestHandler):
    """Answers 503 to "busy" and with no texts to all else; closes connections that are idle."""

    protocol_version = "HTTP/1.1"
    timeout = 0.1
    tries = 0

    def do_POST(self) -> None:
        busy = b"busy" in self.rfile.read(int(self.headers["content-length"]))
        Busy.tries += busy
        answer = b'{"error": "the queue is full"}' if busy else b'{"translations": []}'
        self.send_response(503 if busy else 200)
        self.send_header("content-length", str(len(answer)))
        self.send_header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def busy() -> Iterator[str]:
    """The URL of a server that is busy."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        Busy.tries = 0
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_busy_server_is_asked_again_but_not_for_ever(
    busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with pytest.raises(WorkError, match="the queue is full"):
        Client(busy).translate(["busy"])
    assert Busy.tries == client.TRIES
    assert slept == [0.0] + [client.PATIENCE] * (client.TRIES - 1)


def test_a_connection_that_the_server_closed_is_opened_again(busy: str) -> None:
    caller = Client(busy)
    assert caller.translate(["eins"]) == []
    time.sleep(0.4)
    assert caller.translate(["zwei"]) == []
