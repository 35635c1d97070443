"""The process: signals under load, clients that vanish or crawl, tokens, and refusals to start."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from seq2see.serve.run import allow_files

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
TOKEN = "a-token-of-the-tests"
SLOW = 1000  # clients
LONG = {"text": [" ".join(WORDS) + f" {number}" for number in range(600)], "beam": 16}


class Load:
    """Clients in threads, each with a connection, until the server refuses or the test ends."""

    def __init__(self, server: Any, clients: int) -> None:
        self.server = server
        self.answered = 0
        self.lost: list[str] = []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def _ask(self, number: int) -> None:
        with httpx.Client(base_url=self.server.url, timeout=30) as client:
            count = 0
            while not self.stopped.is_set():
                count += 1
                text = " ".join(WORDS[(number * count + i) % 10] for i in range(2 + count % 6))
                try:
                    response = client.post("/v1/translate", json={"text": f"{text} {count}"})
                except httpx.ConnectError:
                    return  # not accepted
                except httpx.TransportError as error:
                    self.lost.append(repr(error))
                    return
                if response.status_code != 200:
                    self.lost.append(response.text)
                self.answered += 1

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


class Long(threading.Thread):
    """A request of many sentences, most of which wait in the queue."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server
        self.translations: list[Any] = []
        self.start()
        wait_for(lambda: server.figure("seq2see_queue_sentences") > 100)

    def run(self) -> None:
        response = httpx.post(f"{self.server.url}/v1/translate", json=LONG, timeout=60)
        self.translations = response.json()["translations"]

    def is_answered(self) -> bool:
        """Wait for the answer; tell whether all is translated."""
        self.join()
        return len(self.translations) == len(LONG["text"])


def test_sigterm_under_load_loses_no_accepted_request(start: Any, exported: Path) -> None:
    server = start("--model", exported)
    load = Load(server, 12)
    wait_for(lambda: load.answered > 100)
    long = Long(server)
    server.signal(signal.SIGTERM)
    assert long.is_answered()
    code, log = server.stop()
    load.stop()
    assert code == 0 and load.lost == []
    events = [line["event"] for line in log]
    assert events[-1] == "stopped" and "draining" in events
    answered = [line for line in log if line["event"] == "request" and line["status"] == 200]
    count = len([line for line in answered if line["route"] == "/v1/translate"])
    assert count == load.answered + 1


def test_a_request_that_comes_with_sigterm_is_answered(start: Any, exported: Path) -> None:
    server = start("--model", exported)
    assert server.translate("zwei vier") == ["two four"]  # opens a connection
    server.signal(signal.SIGTERM)
    time.sleep(0.1)
    last = server.client.post("/v1/translate", json={"text": "zwei vier"})
    assert last.status_code == 200 and last.headers["connection"] == "close"
    assert server.stop()[0] == 0


def test_sighup_under_load_loses_no_request_and_takes_the_new_model(
    start: Any, exported: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(exported, tmp_path / "copy"))
    server = start("--model", f"toy={copy}")
    load = Load(server, 6)
    recipe = (copy / "recipe.toml").read_text(encoding="utf-8")
    about = json.loads((copy / "engine.json").read_bytes())
    assert 'source = "de"' not in recipe
    (copy / "recipe.toml").write_text(
        recipe.replace("[data]", '[data]\nsource = "fr"'), encoding="utf-8"
    )
    about["files"].pop("recipe.toml", None)
    (copy / "engine.json").write_text(json.dumps(about), encoding="utf-8")
    before = load.answered
    long = Long(server)
    server.signal(signal.SIGHUP)

    def source() -> str:
        code: str = server.client.get("/v1/models").json()["models"][0]["source"]
        return code

    wait_for(lambda: source() == "fr")
    wait_for(lambda: load.answered > before + 50)
    assert long.is_answered()
    load.stop()
    assert load.lost == []
    (copy / "model.bin").write_bytes(b"broken")
    server.signal(signal.SIGHUP)
    time.sleep(0.5)
    assert server.translate("zwei vier") == ["two four"]  # the model that was open still serves
    _, log = server.stop()
    assert [line["event"] for line in log if "reload" in line["event"]] == [
        "reloaded",
        "reload failed",
    ]


def test_a_client_that_vanishes_leaves_the_queue(start: Any, exported: Path) -> None:
    server = start("--model", exported, "--cache", 0)
    texts = [" ".join(WORDS) + f" {number}" for number in range(1000)]
    body = json.dumps({"text": texts, "beam": 16}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(head.encode() + b"content-type: application/json\r\n\r\n" + body)
        wait_for(lambda: server.figure("seq2see_queue_sentences") > 300)
    wait_for(lambda: server.figure("seq2see_queue_sentences") == 0, seconds=2)
    assert server.figure("seq2see_batch_sentences_sum") < 900
    _, log = server.stop()
    assert 499 in [line.get("status") for line in log]


def test_slow_clients_do_not_stop_the_others(start: Any, exported: Path) -> None:
    allow_files(SLOW + 500)
    server = start("--model", exported)
    heads = [b"POST /v1/trans", b"POST /v1/translate HTTP/1.1\r\ncontent-length: 100\r\n\r\n{"]
    with contextlib.ExitStack() as stack:
        slow = []
        for number in range(SLOW):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            slow.append(stack.enter_context(client))
            client.sendall(heads[number % 2])
        wait_for(lambda: server.figure("process_open_fds") > SLOW)
        for second in range(3):
            for client in slow:
                with contextlib.suppress(ConnectionError):  # the server waits for 10 seconds
                    client.sendall(b"a" if second else b"l")
            begun = time.monotonic()
            for number in range(5):
                server.translate(f"zwei vier {second} {number}")
            assert time.monotonic() - begun < 5
            time.sleep(1)
    assert server.stop()[0] == 0


def test_a_full_queue_answers_503_and_says_for_how_long(start: Any, exported: Path) -> None:
    server = start("--model", exported, "--cache", 0)
    statuses = []

    def ask() -> None:
        response = httpx.post(f"{server.url}/v1/translate", json=LONG, timeout=60)
        statuses.append(response.status_code)
        if response.status_code == 503:
            assert int(response.headers["retry-after"]) >= 1
            assert "queue is full" in response.json()["error"]

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 503, 504} and 503 in statuses


def test_a_token_is_needed_where_one_is_set(start: Any, exported: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    server = start("--model", exported, "--token-file", file)
    body = {"text": "zwei vier"}
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer " + "ä"}):
        raw = {key: value.encode() for key, value in headers.items()}
        response = server.client.post("/v1/translate", json=body, headers=raw)
        assert response.status_code == 401 and response.headers["www-authenticate"] == "Bearer"
    good = {"authorization": f"Bearer {TOKEN}"}
    assert server.client.post("/v1/translate", json=body, headers=good).status_code == 200
    libre = {"q": "zwei vier", "source": "de", "target": "en"}
    refused = server.client.post("/translate", json=libre)
    assert refused.status_code == 403 and list(refused.json()) == ["error"]
    allowed = server.client.post("/translate", json=libre | {"api_key": TOKEN})
    assert allowed.json() == {"translatedText": "two four"}
    assert server.client.get("/metrics").status_code == 401
    assert server.client.get("/health").status_code == 200


def test_other_origins_are_allowed_only_by_name(start: Any, exported: Path) -> None:
    server = start("--model", exported, "--allow-origin", "https://a.example")
    for origin, allowed in (("https://a.example", True), ("https://b.example", False)):
        headers = {"origin": origin, "access-control-request-method": "POST"}
        response = server.client.options("/v1/translate", headers=headers)
        assert ("access-control-allow-origin" in response.headers) is allowed


def test_the_log_has_no_text_of_users(start: Any, exported: Path) -> None:
    server = start("--model", exported)
    server.translate("zwei vier")
    server.client.get("/secret-path", params={"q": "secret"})
    form = {"content-type": "multipart/form-data; boundary=x"}
    for body in (b"--secret", b"--x\r\nsecret\r\n", b"--x--\r\nsecret"):
        assert server.client.post("/translate", content=body, headers=form).status_code == 400
    _, log = server.stop()
    assert "zwei" not in json.dumps(log) and "secret" not in json.dumps(log)
    (request,) = [line for line in log if line.get("route") == "/v1/translate"]
    assert request["status"] == 200 and request["ms"] > 0 and request["id"]


def test_a_model_is_exported_once_and_kept(start: Any, trained: Path, tmp_path: Path) -> None:
    env = {"SEQ2SEE_CACHE": str(tmp_path)}
    first = start("--model", trained, env=env)
    assert first.translate("drei acht eins") == ["three eight one"]
    _, log = first.stop()
    assert "exporting" in [line["event"] for line in log]
    second = start("--model", trained, env=env)
    _, log = second.stop()
    assert "exporting" not in [line["event"] for line in log]
    assert [line["engine"] for line in log if line["event"] == "model"] == ["ct2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "{missing}"], "no such"),
        (["--model", "a={model}", "--model", "a={model}"], "two models are named a"),
        (["--model", "={model}"], "must be DIR or NAME=DIR"),
        (["--model", "{model}", "--engine", "cuda"], "is not one of torch, ct2"),
        (["--model", "{model}", "--token-file", "{missing}"], "cannot read the token"),
        (["--model", "{model}", "--engine", "torch"], "not for engine 'torch'"),
    ],
    ids=str,
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], message: str, exported: Path, tmp_path: Path
) -> None:
    places = {"model": str(exported), "missing": str(tmp_path / "missing")}
    filled = [argument.format(**places) for argument in arguments]
    command = [sys.executable, "-m", "seq2see", "serve", *filled]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line(exported: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "seq2see", "serve", "--model", str(exported)]
        done = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("seq2see: cannot listen on 127.0.0.1:")
    assert "Traceback" not in done.stderr
