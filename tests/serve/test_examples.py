"""The documented unit is one that systemd accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "docs" / "serving" / "seq2see.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_is_valid() -> None:
    command = ["systemd-analyze", "verify", "--man=no", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert UNIT.name not in done.stderr, done.stderr
