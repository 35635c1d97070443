"""A virtual environment per peer, from its pinned requirements; complete ones are reused."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
VENVS = HERE / ".venvs"


class NotInstalled(Exception):
    """The reason why a peer could not be installed."""


def python(name: str) -> Path:
    """Return the interpreter of a peer's environment."""
    return VENVS / name / ("Scripts" if os.name == "nt" else "bin") / "python"


def ensure(name: str) -> Path:
    """Create the environment, or continue an interrupted installation."""
    requirements = HERE / "requirements" / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    ready = VENVS / name / "ready"
    if ready.exists() and ready.read_text(encoding="utf-8") == digest:
        return python(name)
    VENVS.mkdir(exist_ok=True)
    log = VENVS / f"{name}.log"
    log.write_bytes(b"")
    pip = [str(python(name)), "-m", "pip", "install", "--disable-pip-version-check"]
    _run([sys.executable, "-m", "venv", str(VENVS / name)], log)
    # torch first, by its exact version: if a CPU build is available, nothing else replaces it.
    for line in re.findall(r"^torch==\S+", requirements.read_text(encoding="utf-8"), re.MULTILINE):
        _run([*pip, line], log)
    _run([*pip, "--no-deps", "-r", str(requirements)], log)
    ready.write_text(digest, encoding="utf-8")
    return python(name)


def _run(command: Sequence[str], log: Path) -> None:
    with log.open("ab") as file:
        code = subprocess.run(
            command, stdout=file, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise NotInstalled(f"cannot be installed: {errors[0]} (see {log.relative_to(HERE)})")
