"""The description of the interface, held to by schemathesis: all its checks on every operation."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

TOKEN = "a-token-of-the-tests"
HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
EXAMPLES = 40  # that are drawn for an operation, beside those at the bounds of its values
OPERATIONS = 25
OPTIONS = ["--checks=all", f"--max-examples={EXAMPLES}", "--seed=1", "--generation-deterministic"]
OPTIONS += ["--continue-on-failure", "--no-color", "--workers=2"]


def test_what_is_described_is_answered_and_all_else_refused(
    start: Any, trained: Path, others: dict[str, Path], tmp_path: Path
) -> None:
    places = {"toy": trained, **others}
    models = [f"--model={name}={place}" for name, place in places.items()]
    server = start(*models, "--engine", "torch", env={"SEQ2SEE_TOKEN": TOKEN})
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
    done = subprocess.run(
        [*command, *OPTIONS, "--header", f"Authorization: Bearer {TOKEN}"],
        cwd=tmp_path,
        env=os.environ | {"SCHEMATHESIS_HOOKS": f"{HOOKS}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Tested: {OPERATIONS}" in done.stdout
    code, log = server.stop()
    assert code == 0 and not [line for line in log if line["level"] == "error"]
