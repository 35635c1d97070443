"""Worker processes: a job as JSON on stdin, figures as JSON on stdout, progress on stderr."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from seq2see.errors import WorkError


def run_worker(
    module: str,
    job: Mapping[str, Any],
    environment: Mapping[str, str],
    say: Callable[[str], None] = lambda line: None,
) -> Any:
    """Run a module as a worker on a job and return its figures; each line of stderr goes to `say`.

    Raises WorkError with the last line of stderr if the worker fails.
    """
    # Like the command itself, the worker does not import from the working directory (-P).
    command = [sys.executable, "-P", "-m", module]
    last_line = "no message"
    # Files instead of pipes for stdin and stdout: only one pipe can be drained at a time.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as figures:
        given.write(json.dumps(job).encode())
        given.seek(0)
        with subprocess.Popen(
            command,
            stdin=given,
            stdout=figures,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
        ) as worker:
            assert worker.stderr is not None
            try:
                for line in worker.stderr:
                    if text := line.decode(errors="replace").strip():
                        last_line = text
                        say(text)
            except BaseException:
                worker.kill()
                raise
        if worker.returncode:
            raise WorkError(f"the worker ended with code {worker.returncode}: {last_line}")
        figures.seek(0)
        return json.load(figures)
