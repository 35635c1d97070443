"""Run directories: which are refused, which continue, and what they hold."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError, WorkError
from seq2see.files import FolderLock
from seq2see.recipe.schema import Recipe
from seq2see.tasks import run_directory


def test_a_model_directory_can_be_read_by_others(trained: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    names = ("model.safetensors", "recipe.toml", "scorecard.json")
    for name in (*names, "tokenizer.json", "tokenizer.model"):
        assert (trained / name).stat().st_mode & 0o777 == 0o666 & ~mask, name


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_resuming_nothing_starts_and_a_finished_run_says_so(small: Any, tmp_path: Path) -> None:
    small.train("run", "train.steps=2", resume=True)
    before = contents(tmp_path / "run")
    for steps in (1, 2):
        translator = small.train("run", f"train.steps={steps}", resume=True)
        says = f"{tmp_path / 'run'}: this run is finished (2 steps); a larger budget extends it, "
        says += "also on a corpus that has grown: --set train.steps=4\n"
        assert small.said.getvalue() == says
    assert len(translator.translate(["eins"])) == 1
    assert contents(tmp_path / "run") == before


def test_a_name_with_brackets_is_not_markup(small: Any, tmp_path: Path) -> None:
    for _ in range(2):
        small.train("a[/b]", "train.steps=1", resume=True)
    assert small.said.getvalue().startswith(f"{tmp_path / 'a[' / 'b]'}: this run is finished (1 ")


def test_a_directory_that_holds_a_run_is_refused(
    toy: Any, small: Any, tmp_path: Path, trained: Path
) -> None:
    with pytest.raises(InputError, match="run: holds a run already; continue it with --resume, or"):
        toy.train(trained)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text("# mine")
    with pytest.raises(InputError, match="holds a run already"):
        small.train("mine")
    assert (tmp_path / "mine" / "recipe.toml").read_text() == "# mine"


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_that_another_process_trains_into_is_refused(
    small: Any, tmp_path: Path, resume: bool
) -> None:
    pytest.importorskip("fcntl")
    (tmp_path / "run").mkdir()
    with FolderLock() as held:
        held.take(tmp_path / "run")
        with pytest.raises(InputError, match="run: another process is training into it; choose"):
            small.train("run", "train.steps=1", resume=resume)
    assert not contents(tmp_path / "run")
    small.train("run", "train.steps=1", resume=resume)


@pytest.mark.parametrize(
    "mistake",
    [
        "data.train=/no/such/file.tsv",
        "tokenizer.size=9",
        "data.max_length=1",
        "data.hold_out=0",
        "data.columns=[0, 5]",
    ],
)
def test_a_mistake_found_before_training_leaves_the_directory_free(
    small: Any, mistake: str
) -> None:
    with pytest.raises(InputError) as caught:
        small.train("run", "train.steps=1", mistake)
    key = mistake.partition("=")[0]
    assert key in str(caught.value) or "/no/such/file.tsv" in str(caught.value)
    small.train("run", "train.steps=1")


def test_a_call_that_finds_no_corpus_leaves_no_folder(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file for data.train"):
        toy.train(tmp_path / "run", "data.train=none.tsv")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("model.heads=4", "was begun with model.heads = 2 and cannot continue with 4"),
        ("train.seed=7", "was begun with train.seed = 1 and cannot continue with 7"),
        ("tokenizer.size=50", "was begun with tokenizer.size = 60 and cannot continue with 50"),
        ("data.limit=100", "was begun with data.limit = None and cannot continue with 100"),
    ],
)
def test_another_recipe_cannot_continue_a_run(
    small: Any, tmp_path: Path, killed_after: Any, change: str, says: str
) -> None:
    with killed_after(2):
        small.train("run", "train.checkpoint_every=1")
    before = (tmp_path / "run" / "recipe.toml").read_bytes()
    with pytest.raises(InputError, match=says):
        small.train("run", "train.checkpoint_every=1", change, resume=True)
    assert (tmp_path / "run" / "recipe.toml").read_bytes() == before


def test_a_budget_may_grow(small: Any, tmp_path: Path, killed_after: Any) -> None:
    with killed_after(5):
        small.train("run", "train.checkpoint_every=2", "train.steps=6")
    small.train("run", "train.checkpoint_every=2", "train.epochs=3", resume=True)
    updates = [event["update"] for event in small.log("run", "validation")]
    assert updates == [2, 4, 6, 8, 10, 12]
    assert Recipe.load(tmp_path / "run" / "recipe.toml").train.epochs == 3


def test_other_text_makes_another_vocabulary_until_there_is_a_checkpoint(
    toy: Any, small: Any, tmp_path: Path, killed_after: Any
) -> None:
    def killed(updates: int) -> None:
        with killed_after(updates):
            small.train("run", "train.checkpoint_every=1", resume=True)

    killed(0)
    first = (tmp_path / "run" / "tokenizer.model").read_bytes()
    killed(0)
    assert "(from the cache)" in small.said.getvalue()
    text = toy.pairs.read_text(encoding="utf-8")
    toy.pairs.write_text(text.replace("eins", "uno"), encoding="utf-8")
    killed(2)
    assert "(from the cache)" not in small.said.getvalue()
    second = (tmp_path / "run" / "tokenizer.model").read_bytes()
    assert second != first
    toy.pairs.write_text(text, encoding="utf-8")
    for _ in range(2):
        says = r"run: was trained on other data: \d+ of its 300 pairs are missing here; a new run"
        with pytest.raises(InputError, match=says):
            small.train("run", "train.checkpoint_every=1", resume=True)
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == second


def test_a_model_that_cannot_be_written_is_one_line(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, write: Any) -> None:
        if path.name == "model.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path)

    with monkeypatch.context() as context:
        context.setattr(run_directory, "write_atomically", full)
        says = r"model.safetensors: cannot write the model: .*No space left"
        with pytest.raises(WorkError, match=says):
            small.train("run", "train.steps=2")
    small.train("run", "train.steps=2", resume=True)
    assert len(small.log("run", "epoch")) == 0  # nothing was trained twice
