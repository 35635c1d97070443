"""A server in a process of its own, with the toy model, and clients of it; a browser."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

START = 60.0  # seconds
WAIT = 20_000  # milliseconds for a browser; the machine may be busy


class Running:
    """A server process and a client of it."""

    def __init__(self, *arguments: object, env: dict[str, str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "seq2see", "serve", "--port", str(self.port)]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        )
        self.client = httpx.Client(base_url=self.url, timeout=30)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.client.get("/ready").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        self.process.kill()
        raise AssertionError(self.stop())

    def translate(self, text: str | list[str], **options: Any) -> list[str]:
        """Translate through /v1/translate."""
        response = self.client.post("/v1/translate", json={"text": text, **options})
        assert response.status_code == 200, response.text
        return [row["text"] for row in response.json()["translations"]]

    def figure(self, name: str) -> float:
        """Sum the figures of /metrics whose names begin like this."""
        lines = self.client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> tuple[int, list[dict[str, Any]]]:
        """End the server; return its exit code and its log."""
        self.client.close()
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        if not self._log.closed:
            self._log.seek(0)
            self.log = [json.loads(line) for line in self._log.read().decode().splitlines()]
            self._log.close()
        return code, self.log


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers that end with the test."""
    servers: list[Running] = []

    def run(*arguments: object, env: dict[str, str] | None = None) -> Running:
        servers.append(Running(*arguments, env=env))
        return servers[-1]

    yield run
    for server in servers:
        server.stop()


class Local:
    """A server in a thread, without models or with one, whose bounds a test may choose."""

    def __init__(
        self,
        token: str | None = None,
        hosts: Sequence[str] = (),
        model: Path | None = None,
        **limits: float,
    ) -> None:
        import uvicorn

        from seq2see.serve import run
        from seq2see.serve.app import build
        from seq2see.serve.hosts import Hosts
        from seq2see.serve.models import Models, Place
        from seq2see.serve.settings import Limits, Settings

        settings = Settings(Limits(**limits), token)  # type: ignore[arg-type]
        places = [] if model is None else [Place("toy", model)]
        self.models = Models(places, "torch", settings)
        application, _ = build(self.models, Hosts(hosts))
        listener = run.bind("127.0.0.1", 0)
        self.port = int(listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = run.configure(application, settings.limits)
        self._server = uvicorn.Server(self._config)
        self._thread = threading.Thread(target=self._run, args=(listener, self.models.open()))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def _run(self, listener: socket.socket, opened: list[Any]) -> None:
        async def serve() -> None:
            self.models.serve(opened)
            await self._server.serve([listener])

        with asyncio.Runner(loop_factory=self._config.get_loop_factory()) as runner:
            runner.run(serve())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def local() -> Iterator[Callable[..., Local]]:
    """Start servers without models that end with the test."""
    servers: list[Local] = []

    def run(**options: Any) -> Local:
        servers.append(Local(**options))
        return servers[-1]

    yield run
    for server in servers:
        server.stop()


def relabelled(trained: Path, out: Path, source: str, target: str) -> Path:
    """Copy a model, as one of other languages."""
    shutil.copytree(trained, out)
    path = out / "recipe.toml"
    recipe = path.read_text(encoding="utf-8")
    languages = f'[data]\nsource = "{source}"\ntarget = "{target}"\n'
    path.write_text(recipe.replace("[data]\n", languages), encoding="utf-8")
    return out


@pytest.fixture(scope="session")
def site(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of four models: two of a pair, one back, and one from right to left."""
    folder = tmp_path_factory.mktemp("site")
    places = {
        "toy": trained,
        "twin": trained,
        "back": relabelled(trained, folder / "back", "en", "de"),
        "hebrew": relabelled(trained, folder / "hebrew", "he", "en"),
    }
    models = [part for name, place in places.items() for part in ("--model", f"{name}={place}")]
    running = Running(*models, "--engine", "torch")
    yield running
    running.stop()


@pytest.fixture(scope="session", params=["ct2", "torch"])
def server(request: pytest.FixtureRequest, trained: Path, exported: Path) -> Iterator[Running]:
    """A server of the toy model on each engine in turn; its log must show no failure."""
    place = {"ct2": exported, "torch": trained}[request.param]
    running = Running("--model", f"toy={place}", "--engine", request.param)
    yield running
    code, log = running.stop()
    assert code == 0
    assert not [line for line in log if line["level"] == "error"]


@pytest.fixture(scope="session")
def pair(siblings: list[Path]) -> Iterator[Running]:
    """A server of two models of different seeds, "a" and "b"; its log must show no failure."""
    models = [f"--model={name}={place}" for name, place in zip("ab", siblings, strict=True)]
    running = Running(*models, "--engine", "torch")
    yield running
    code, log = running.stop()
    assert code == 0
    assert not [line for line in log if line["level"] == "error"]


@pytest.fixture(scope="session")
def mixed(trained: Path, others: dict[str, Path]) -> Iterator[Running]:
    """A server of "toy" and of models that do not translate; its log must show no failure."""
    places = {"toy": trained, **others}
    models = [f"--model={name}={place}" for name, place in places.items()]
    running = Running(*models, "--engine", "torch")
    yield running
    code, log = running.stop()
    assert code == 0
    assert not [line for line in log if line["level"] == "error"]


def unavailable(reason: str) -> NoReturn:
    """Skip where there is no browser; CI has one, so there it is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")  # Playwright's event loop runs as long as there is one
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        unavailable("Playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        unavailable("Debian's Chromium is not installed")
    expect.set_options(timeout=WAIT)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


class Visit:
    """A page in a browser, and everything that it asked for and complained of."""

    def __init__(self, browser: Any, url: str, width: int, focus: str | None) -> None:
        from playwright.sync_api import expect

        self.expect = expect
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            locale="en-GB",
            permissions=["clipboard-read", "clipboard-write"],
            color_scheme="light",
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.aborted: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.page.on("requestfailed", lambda request: self.aborted.append(request.failure))
        self.page.goto(url)
        if focus is not None:
            expect(self.page.locator(focus)).to_be_focused()

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def find(self, selector: str) -> Any:
        return self.page.locator(selector)

    def see(self, selector: str, text: str | re.Pattern[str]) -> None:
        """Wait until an element has this text."""
        self.expect(self.find(selector)).to_have_text(text)

    def read(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def translated(self, text: str) -> str:
        """Return the translation, as it is, once there is one and nothing is under way."""
        self.find("#text").fill(text)
        self.expect(self.find("#translation")).not_to_be_empty()
        self.page.wait_for_timeout(300)
        self.expect(self.find("#translation")).to_have_attribute("aria-busy", "false")
        answer: str = self.read("document.querySelector('#translation').textContent")
        return answer

    def forgive(self, pattern: str) -> None:
        """Check that the browser complained of what a test provoked, and of nothing else."""
        assert self.faults and all(re.search(pattern, fault) for fault in self.faults)
        self.faults.clear()


Go = Callable[..., Visit]


@pytest.fixture
def go(browser: Any) -> Iterator[Go]:
    """Open pages, which must ask no other host and complain of nothing."""
    visits: list[tuple[Visit, str]] = []

    def visit(url: str, width: int = 1280, focus: str | None = "#text") -> Visit:
        visits.append((Visit(browser, url, width, focus), urlsplit(url).netloc))
        return visits[-1][0]

    yield visit
    for one, host in visits:
        one.context.close()
        assert one.faults == []
        assert one.hosts == {host}
