"""A fixture that runs the command line in this process."""

import io
import sys

import pytest

from seq2see.cli import main as cli


class Call:
    """Runs the command line in this process: exit code, stdout, stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, error

    def refused(self, *arguments: object, code: int = 2, stdin: bytes = b"") -> str:
        """Run a call that must fail; return its one line of stderr after those of progress."""
        ended, out, error = self(*arguments, stdin=stdin)
        assert (ended, out) == (code, "")
        *progress, last = error.splitlines()
        assert all(line.endswith(" …") for line in progress), error
        assert last.startswith("seq2see: ") and error.endswith("\n")
        return last.removeprefix("seq2see: ").strip()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys)
