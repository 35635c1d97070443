"""Worker processes: jobs in, figures and progress out, and the reason of a failure."""

import sys
from pathlib import Path

import pytest

from seq2see.bench.process import run_worker
from seq2see.errors import WorkError

ECHO = """#!/bin/sh
echo "$VARIABLE $@" >&2
echo >&2
cat
"""
FAILING = """#!/bin/sh
echo round 1 >&2
echo no memory >&2
echo >&2
exit 3
"""


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in the interpreter's place."""
    script = tmp_path / "python"
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return script


def test_a_job_goes_in_and_figures_come_out(interpreter: Path) -> None:
    interpreter.write_text(ECHO, encoding="utf-8")
    said: list[str] = []
    job = {"texts": ["ä\n"] * 100_000}  # more than a pipe holds
    assert run_worker("some.module", job, {"VARIABLE": "7"}, said.append) == job
    assert said == ["7 -P -m some.module"]


@pytest.mark.parametrize("texts", [1, 100_000])
def test_a_failing_worker_is_quoted(interpreter: Path, texts: int) -> None:
    """Also one that never reads its job, however long."""
    interpreter.write_text(FAILING, encoding="utf-8")
    said: list[str] = []
    with pytest.raises(WorkError, match=r"^the worker ended with code 3: no memory$"):
        run_worker("some.module", {"texts": ["a"] * texts}, {}, said.append)
    assert said == ["round 1", "no memory"]


def test_a_failure_without_a_message(interpreter: Path) -> None:
    interpreter.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    with pytest.raises(WorkError, match=r"^the worker ended with code 1: no message$"):
        run_worker("some.module", {}, {})
