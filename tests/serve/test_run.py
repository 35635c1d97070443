"""The start of the process: its limits, its signals and its garbage."""

import gc
import resource
import subprocess
import sys
import weakref

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

from seq2see.serve.run import allow_files, set_aside

UNLIMITED = resource.RLIM_INFINITY
HANG_UP = """
import os, signal
from seq2see.serve import run
from seq2see.serve.models import Models
from seq2see.serve.settings import Settings

def bind(host, port):
    os.kill(os.getpid(), signal.SIGHUP)
    raise SystemExit(7)

run.bind = bind
run.run(Models([], None, Settings()), "127.0.0.1", 0)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((256, UNLIMITED), (5000, UNLIMITED)),
        ((256, 1000), (1000, 1000)),
        ((256, 9000), (5000, 9000)),
        ((6000, 9000), (6000, 9000)),
        ((UNLIMITED, UNLIMITED), (UNLIMITED, UNLIMITED)),
    ],
    ids=str,
)
def test_as_many_files_as_are_needed_may_be_open(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    limits = [before]
    monkeypatch.setattr(resource, "getrlimit", lambda _: before)
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))
    allow_files(5000)
    assert limits[-1] == after


def test_a_hang_up_before_the_models_are_open_is_ignored() -> None:
    done = subprocess.run([sys.executable, "-c", HANG_UP], timeout=60)
    assert done.returncode == 7


def test_what_was_set_aside_is_freed_after_the_next_reload() -> None:
    class Model:
        """A model that refers to itself."""

        def __init__(self) -> None:
            self.itself = self

    model = Model()
    kept = weakref.ref(model)
    try:
        set_aside()
        del model
        gc.collect()
        assert kept() is not None
        set_aside()
        assert kept() is None
    finally:
        gc.unfreeze()
