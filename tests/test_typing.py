"""Type checkers accept the README's code from outside the repository, with the package installed."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import seq2see

README = Path(__file__).parents[1] / "README.md"
USES = """
from typing import assert_type

import seq2see

assert_type(seq2see.load("runs/mine"), seq2see.Translator | seq2see.Engine)
assert_type(seq2see.load("runs/mine").translate(["a"]), list[str])
assert_type(seq2see.load("runs/mine").translate(["a"], n_best=3), list[list[str]])
assert_type(seq2see.load("runs/mine").explain("a"), seq2see.Explanation)
assert_type(seq2see.load("runs/mine", engine="torch"), seq2see.Translator)
assert_type(seq2see.load("runs/mine-ct2", engine="ct2"), seq2see.Engine)
trained = seq2see.train("vit-digits")
assert isinstance(trained, seq2see.PictureModel)
print(trained.classify(["digit.png"])[0].label)
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the README's code and an environment in which seq2see is installed."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder / "venv", symlinks=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "seq2see").symlink_to(Path(seq2see.__file__).parent)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "readme.py").write_text(code, encoding="utf-8")
    (folder / "uses.py").write_text(USES, encoding="utf-8")
    return folder


def check(outside: Path, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    done = subprocess.run(
        [*command, "readme.py", "uses.py"],
        capture_output=True,
        text=True,
        cwd=outside,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_accepts_the_readme(outside: Path) -> None:
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir=cache")
    check(outside, *mypy, "--python-executable=venv/bin/python")


def test_pyright_accepts_the_readme(outside: Path) -> None:
    pytest.importorskip("pyright", reason="needs pyright: pip install pyright")
    if shutil.which("node") is None:
        pytest.skip("pyright needs node")
    check(outside, sys.executable, "-m", "pyright", "--pythonpath=venv/bin/python")
