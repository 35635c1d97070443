"""Exports of the models that are served, made once and kept."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from seq2see.ct2 import engine as ct2
from seq2see.errors import InputError, WorkError
from seq2see.serve.logs import log
from seq2see.text.store import CACHE

HASHED = ("model.safetensors", "recipe.toml", "tokenizer.json")
WRONG_INPUT = 2  # exit code of a command


def exported(directory: Path) -> Path:
    """Return the model's int8 export; another is made when the model changes.

    It is kept under SEQ2SEE_CACHE, else in the model directory.
    """
    shared = os.environ.get(CACHE)
    root = Path(shared).expanduser() if shared else directory
    out = root / "exports" / _digest(directory)
    if not ct2.exported(out):
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            rule = f"set {CACHE} to a folder that can be written"
            raise InputError(
                f"{out.parent}: cannot keep the export there: {error.strerror}; {rule}"
            ) from None
        log("exporting", model=str(directory), out=str(out))
        _export(directory, out)
    return out


def _digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for name in HASHED:
        path = directory / name
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; is {directory} a model directory?")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _export(directory: Path, out: Path) -> None:
    """Run the command in a process of its own: the server then never loads PyTorch."""
    arguments = ["export", "--model", str(directory), "--out", str(out), "--json"]
    command = [sys.executable, "-m", "seq2see", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode and not ct2.exported(out):  # another server may have been faster
        reason = done.stderr.strip().splitlines()[-1:] or ["the export ended without a word"]
        kind = InputError if done.returncode == WRONG_INPUT else WorkError
        raise kind(reason[0].removeprefix("seq2see: "))
