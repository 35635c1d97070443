"""Atomic writes, and locks of folders.

A killed process leaves the old file or the new one, never a part of either, and no lock.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Self


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk, rename it into place."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        write(temporary)
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FolderLock:
    """Lock on a folder that other processes can see, until this context or the process ends."""

    def __init__(self) -> None:
        self.descriptor: int | None = None

    def take(self, folder: Path) -> bool:
        """Lock a folder, if it exists; return False if another process has locked it.

        Where the system or the file system has no locks, the folder counts as free.
        """
        if self.descriptor is not None or not folder.is_dir():
            return True
        try:
            import fcntl  # not everywhere
        except ImportError:
            return True
        self.descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
