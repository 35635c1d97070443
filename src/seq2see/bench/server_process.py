"""Server processes to be measured: started on a free port of this machine, watched and stopped."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

import psutil

from seq2see.errors import InputError, WorkError

HOST = "127.0.0.1"
LOOPBACK = (HOST, "localhost", "::1")
START = 300.0  # seconds that a server may take to be ready; it may export its model first
STOP = 30.0


@dataclass(frozen=True)
class Server:
    """A server that answers."""

    host: str
    port: int
    pid: int | None  # None if another program started it

    def resident_mb(self) -> float | None:
        """Return the resident memory of the process and its children."""
        if self.pid is None:
            return None
        total = 0
        own = psutil.Process(self.pid)
        for process in (own, *own.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total / 2**20


def running(url: str) -> Server:
    """Return the server of a URL, which must be of this machine."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.path not in ("", "/"):
        example = "http://127.0.0.1:8000"
        raise InputError(f"--url {url}: must be the root of a server here, such as {example}")
    server = Server(parts.hostname, parts.port or 80, None)
    if not _answers(server, "/health"):
        raise InputError(f"--url {url}: GET /health is not answered with 200")
    return server


@contextlib.contextmanager
def serving(
    command: Sequence[str],
    *,
    ready: str = "/ready",
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Start `command --port PORT`, wait until GET `ready` gives 200, and stop it at the end.

    Raises WorkError with its last line on stderr if it ends before.
    """
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=os.environ | (environment or {}),
        )
        try:
            server = Server(HOST, port, process.pid)
            _wait(process, server, ready, log)
            yield server
        finally:
            _stop(process)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        port: int = listening.getsockname()[1]
        return port


def _wait(process: "subprocess.Popen[bytes]", server: Server, ready: str, log: IO[bytes]) -> None:
    deadline = time.monotonic() + START
    while not _answers(server, ready):
        if process.poll() is not None:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise WorkError(f"the server ended with code {process.returncode}: {lines[-1]}")
        if time.monotonic() > deadline:
            raise WorkError(f"the server is not ready after {START:g} s")
        time.sleep(0.05)


def _answers(server: Server, path: str) -> bool:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End a server as an operator would, and by force if that takes too long."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
