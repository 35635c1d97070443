"""Shared by the tests of training: processes, forked so that they need not import torch again."""

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seq2see.cli import main as cli
from seq2see.tasks.run import train

Work = Callable[[int], Any]  # of a rank

SECONDS = 120.0  # until a test gives up


@dataclass
class Ended:
    """How the processes ended: by rank, exit codes (negative: signals), results and stderr."""

    codes: list[int] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """What all of them said, but for the announcements of progress."""
        lines = [line for text in self.said for line in text.splitlines()]
        return [line for line in lines if line.startswith("seq2see: ")]


class Processes:
    """Starts processes that find each other by the variables that torchrun sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, size: int, work: Work, check: bool = True, **variables: str) -> Ended:
        """Let each rank work; collect what they return, as JSON."""
        shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", **variables}
        shared["MASTER_PORT"] = str(free_port())
        pids = []
        for rank in range(size):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            pid = os.fork()
            if pid == 0:
                _child(work, rank, self.folder / f"rank-{rank}", shared | own)
            pids.append(pid)
        ended = Ended([_wait(pid, pids) for pid in pids])
        for rank in range(size):
            result = self.folder / f"rank-{rank}.json"
            ended.results.append(json.loads(result.read_text()) if result.exists() else None)
            said = self.folder / f"rank-{rank}.err"
            ended.said.append(said.read_text(encoding="utf-8"))
            result.unlink(missing_ok=True)
        if check:
            assert ended.codes == [0] * size, "\n".join(ended.said)
        return ended

    def port(self) -> int:
        return free_port()

    def train(self, size: int, recipe: Path, out: Path, *settings: str, **keys: Any) -> Ended:
        """Train a recipe with several processes; alone, in this one."""

        def work(rank: int) -> None:
            console = Console(stderr=True, soft_wrap=True)
            overrides = list(settings)
            train(recipe, out=out, overrides=overrides, device="cpu", console=console, **keys)

        if size > 1:
            return self(size, work)
        train(
            recipe, out=out, overrides=settings, device="cpu", console=Console(quiet=True), **keys
        )
        return Ended()

    def refused(self, size: int, *arguments: object, code: int = 2, **keys: Any) -> str:
        """Run a command that must fail on all ranks; return the one line that one of them says.

        `each` may give a rank other arguments.
        """
        each: Callable[[int], list[object]] = keys.pop("each", lambda rank: [])

        def work(rank: int) -> None:
            sys.argv = ["seq2see", *map(str, arguments), *map(str, each(rank))]
            cli.main()

        ended = self(size, work, check=False, **keys)
        assert code in ended.codes and 0 not in ended.codes, ended
        (line,) = ended.lines
        return line.removeprefix("seq2see: ")


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    folder = tmp_path / "processes"
    folder.mkdir()
    return Processes(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _child(work: Work, rank: int, path: Path, environment: dict[str, str]) -> None:
    """Work in a forked process, which must not return into the test."""
    code = 1
    try:
        os.environ.update(environment)
        descriptor = os.open(f"{path}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 2)
        sys.stderr = os.fdopen(descriptor, "w", encoding="utf-8", buffering=1)
        sys.__stderr__ = sys.stderr
        result = work(rank)
        Path(f"{path}.json").write_text(json.dumps(result))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, all_pids: list[int]) -> int:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    for one in all_pids:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
