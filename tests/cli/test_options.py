"""Options that commands share: files named by --out."""

from pathlib import Path

import pytest

from seq2see.cli.options import check_out, write_lines
from seq2see.errors import InputError


def test_where_translations_cannot_be_written(tmp_path: Path) -> None:
    source, folder = tmp_path / "source.txt", tmp_path / "folder"
    source.write_text("text")
    folder.mkdir()
    (tmp_path / "link").symlink_to(source)
    for path in (source, tmp_path / "link", folder / ".." / "source.txt"):
        with pytest.raises(InputError, match=f"--out {path}: is an input"):
            check_out(path, tmp_path / "other.txt", source)
    with pytest.raises(
        InputError, match=f"--out {tmp_path}/no/out: there is no folder {tmp_path}/no"
    ):
        check_out(tmp_path / "no" / "out", source)
    for path in (folder, Path("/dev/null")):
        with pytest.raises(InputError, match=f"--out {path}: exists and is not a file"):
            check_out(path, source)
    with pytest.raises(InputError, match=f"--out {folder}: cannot write: Is a directory"):
        write_lines(folder, ["a"])
    check_out(tmp_path / "new", source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "source.txt"]
