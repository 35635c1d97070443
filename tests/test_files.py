"""Atomic writes leave the old file or the new one; locks end with their process."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seq2see import files


def test_text_is_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    files.write_text(path, "grün\n")
    assert path.read_bytes() == "grün\n".encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("at", ["write", "fsync", "replace"])
def test_a_failure_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def write(temporary: Path) -> None:
        temporary.write_text("half of the n")
        if at == "write":
            fail()

    if at != "write":
        monkeypatch.setattr(os, at, fail)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomically(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_content_is_on_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync = os.fsync
    replace = os.replace

    def note_sync(descriptor: int) -> None:
        order.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "content")
        fsync(descriptor)

    def note_replace(old: Path, new: Path) -> None:
        order.append("name")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    files.write_text(tmp_path / "a.txt", "new")
    assert order == ["content", "name", "folder"]


def test_sha256(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(content)
    assert files.sha256(tmp_path / "a") == hashlib.sha256(content).hexdigest()


HOLD = """
import sys, time
from pathlib import Path
from seq2see.files import FolderLock
print(FolderLock().take(Path(sys.argv[1])), flush=True)
time.sleep(60)
"""


def test_a_locked_folder_is_free_again_when_its_process_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with files.FolderLock() as absent:
        assert absent.take(tmp_path / "not there yet")
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with files.FolderLock() as lock:
            assert not lock.take(tmp_path)
        other.kill()
    for _ in range(2):
        with files.FolderLock() as lock:
            assert lock.take(tmp_path) and lock.take(tmp_path)
    assert not list(tmp_path.iterdir())
