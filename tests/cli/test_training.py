"""`seq2see train`: nothing on stdout, one line for a mistake, code 1 for failed work."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seq2see.recipe.schema import Recipe


def test_mistakes_in_training(call: Any, toy: Any, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    says = call.refused("train", toy.path, "--out", tmp_path / "file" / "run")
    assert says == f"{tmp_path / 'file' / 'run'}: cannot write the run here: Not a directory"
    says = call.refused("train", toy.path, "--out", tmp_path / "file")
    assert says == f"{tmp_path / 'file'}: cannot write the run here: File exists"
    assert "holds a run already" in call.refused("train", toy.path, "--out", trained)
    says = call.refused(
        "train", toy.path, "--out", trained, "--resume", "--set", f"data.train={tmp_path}"
    )
    before = f"data.train = '{trained.parent / 'pairs.tsv'}'"
    assert says == f"{trained}: was begun with {before} and cannot continue with '{tmp_path}'"
    says = call.refused("train", toy.path, "--out", tmp_path / "run", "--device", "abacus")
    assert says.startswith("device 'abacus'") and not (tmp_path / "run").exists()
    says = call.refused(
        "train",
        toy.path,
        "--out",
        tmp_path / "run",
        "--set",
        "data.train=none.tsv",
        "--data",
        tmp_path,
    )
    assert says.startswith(f"{tmp_path / 'none.tsv'}: no such file for data.train")


def test_failed_work_is_code_1_and_names_the_checkpoint(
    call: Any, toy: Any, tmp_path: Path
) -> None:
    settings = [
        *("--set", "train.lr=1e38"),
        *("--set", "train.warmup=1"),
        *("--set", "train.clip=0"),
    ]
    code, out, error = call(
        "train", toy.path, "--out", tmp_path / "run", "--device", "cpu", *settings
    )
    assert (code, out) == (1, "")
    last = error.splitlines()[-1]
    assert last.startswith("seq2see: update ") and "checkpoint" in last and "Traceback" not in error


def test_training_prints_nothing_on_stdout(call: Any, toy: Any, tmp_path: Path) -> None:
    arguments = (
        "train",
        toy.path,
        "--out",
        tmp_path / "run",
        "--device",
        "cpu",
        "--set",
        "train.steps=2",
    )
    code, out, error = call(*arguments)
    assert (code, out) == (0, "") and "BLEU" in error and "Traceback" not in error
    code, out, error = call(*arguments, "--resume")
    assert (code, out) == (0, "") and "holds no run yet" not in error
    assert error.splitlines()[1].startswith(f"{tmp_path / 'run'}: this run is finished")


def test_the_run_directory_is_named_after_the_recipe(
    call: Any, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("train", toy.path, "--device", "cpu", "--minutes", "0.001")[0] == 0
    assert (tmp_path / "runs" / "toy" / "scorecard.json").exists()


def test_resume_says_that_there_is_nothing_to_resume(call: Any, toy: Any, tmp_path: Path) -> None:
    out = tmp_path / "misspelt"
    options = ("--device", "cpu", "--set", "train.steps=1")
    code, _, error = call("train", toy.path, "--out", out, "--resume", *options)
    assert code == 0
    assert error.splitlines()[:2] == [
        f"training {toy.path} into {out} …",
        f"{out} holds no run yet: starting one …",
    ]
    code, _, error = call("train", toy.path, "--out", tmp_path / "new", *options)
    assert code == 0 and "holds no run yet" not in error


FIRST_WORDS = """
import os, sys
from seq2see.cli.main import main

class Screen:
    def write(self, text):
        print((text, "torch" in sys.modules), flush=True)
        os._exit(0)

sys.stderr = Screen()
main()
"""


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("train captions", "captions"),
        ("demo", "captions"),
        ("demo --languages zh-en", "captions-zh-en"),
    ],
)
def test_the_first_line_does_not_wait_for_torch(command: str, recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    call = [sys.executable, "-c", FIRST_WORDS, *command.split(), "--out", str(out)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{(f'training {recipe} into {out} …', False)}\n", done.stderr


def test_a_demo_of_other_languages_is_not_continued(call: Any, tmp_path: Path) -> None:
    Recipe.load("captions").save(tmp_path / "recipe.toml")
    message = call.refused("demo", "--languages", "zh-en", "--out", tmp_path)
    assert f"{tmp_path}: was begun with data.source = 'de' and cannot continue with 'zh'" in message
