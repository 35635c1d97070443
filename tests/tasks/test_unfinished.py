"""Unfinished runs are usable: by their best checkpoint, and a stopped one says so."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.models.unfinished import Usable
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load, load_pictures
from seq2see.training import checkpoint
from seq2see.training.loop import Training
from seq2see.training.state import State

EVERY_2 = ("train.checkpoint_every=2", "train.average=3", "train.steps=20")
TO_CONTINUE = "to continue: the same command with --resume"


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations find update 4 the best."""
    monkeypatch.setattr(Training, "_score", lambda self, _: -abs(self.position.update - 3.9))


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize("ema", [0.0, 0.8])
def test_the_best_checkpoint_serves_as_the_model(
    small: Any, tmp_path: Path, killed_after: Any, capsys: Any, ema: float
) -> None:
    with killed_after(7):
        small.train("run", *EVERY_2, f"train.ema={ema}")
    run = tmp_path / "run"
    translator = load(run, "cpu")
    says = f"{run}: unfinished; using update-00000004, the best so far (validation loss 0.100)\n"
    assert capsys.readouterr().err == says
    file = "ema.safetensors" if ema else "weights.safetensors"
    saved = safetensors.torch.load_file(run / "checkpoints" / "update-00000004" / file)
    own = dict(translator.model.named_parameters())
    assert all(torch.equal(own[name], tensor) for name, tensor in saved.items())
    assert evaluate_own(run, device="cpu").values["sentences"] == 15
    small.train("child", "train.steps=1", init=run)  # a parent may be unfinished, too
    shutil.rmtree(run / "checkpoints" / "update-00000004")
    capsys.readouterr()
    load(run, "cpu")
    assert "using update-00000002, the best so far (validation loss 1.9" in capsys.readouterr().err


def test_without_a_validation_the_newest_serves(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(Training, "_checkpoint_due", Training._save)
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as context:
        context.setattr(State, "average_exponentially", interrupted_after(2))
        small.train("run", "train.steps=9")
    load(tmp_path / "run", "cpu")
    says = "run: unfinished; using update-00000002, the newest, which is not validated\n"
    assert capsys.readouterr().err.endswith(says)


def interrupted_after(updates: int) -> Any:
    """A method of `Training` or `State` that only interrupts training."""

    def method(self: Training | State, **_: object) -> None:
        if self.position.update == updates:
            raise KeyboardInterrupt

    return method


def test_a_corrupt_checkpoint_is_not_used(small: Any, tmp_path: Path, killed_after: Any) -> None:
    with killed_after(2):
        small.train("run", *EVERY_2)
    path = tmp_path / "run" / "checkpoints" / "update-00000002" / "ema.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"update-00000002/ema.safetensors: corrupt"):
        load(tmp_path / "run", "cpu")
    (path.parent / "state.json").write_text("[]")
    with pytest.raises(InputError, match=r"update-00000002/state.json: not a readable checkpoint"):
        load(tmp_path / "run", "cpu")


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize("moment", ["listed", "verified"])
def test_a_checkpoint_that_is_pruned_meanwhile_is_replaced_by_the_next(
    small: Any, tmp_path: Path, killed_after: Any, capsys: Any, monkeypatch: Any, moment: str
) -> None:
    with killed_after(7):
        small.train("run", *EVERY_2)
    real = Usable.weights

    def pruned(self: Usable) -> Path:
        """Prune update 4 as a running training would, before or after it is verified."""
        path = real(self) if moment == "verified" else None
        if self.folder.name == "update-00000004":
            checkpoint.remove(self.folder)
        return path or real(self)

    monkeypatch.setattr(Usable, "weights", pruned)
    run = tmp_path / "run"
    translator = load(run, "cpu")
    *_, last = capsys.readouterr().err.splitlines()
    assert "using update-00000002, the best so far (validation loss 1.9" in last
    saved = safetensors.torch.load_file(run / "checkpoints/update-00000002/ema.safetensors")
    own = dict(translator.model.named_parameters())
    assert all(torch.equal(own[name], tensor) for name, tensor in saved.items())


def test_without_any_checkpoint_left_the_refusal_is_one_line(
    small: Any, tmp_path: Path, killed_after: Any, monkeypatch: Any
) -> None:
    with killed_after(2):
        small.train("run", *EVERY_2)

    def pruned(self: Usable) -> Path:
        checkpoint.remove(self.folder)
        raise InputError(f"{self.folder}: gone")

    monkeypatch.setattr(Usable, "weights", pruned)
    says = r"run/model.safetensors: cannot read the weights: no such file$"
    with pytest.raises(InputError, match=says):
        load(tmp_path / "run", "cpu")


def test_a_finished_model_takes_precedence(trained: Path, capsys: Any) -> None:
    assert ModelDirectory.open(trained).weights_file == trained / "model.safetensors"
    assert capsys.readouterr().err == ""


def test_commands_use_an_unfinished_run(
    call: Any, small: Any, tmp_path: Path, killed_after: Any
) -> None:
    with killed_after(2):
        small.train("run", *EVERY_2)
    for command in (["translate", "eins"], ["evaluate", "--json"]):
        code, out, error = call(*command, "--model", tmp_path / "run", "--device", "cpu")
        assert code == 0 and out
        assert error.startswith(f"{tmp_path / 'run'}: unfinished; using update-00000002, the best")
        assert error.count("\n") == 1


def test_pictures_are_classified_by_an_unfinished_run(own_dots: Any, killed_after: Any) -> None:
    with killed_after(2):
        own_dots.train("run", "train.checkpoint_every=2")
    model = load_pictures(own_dots.folder / "run", "cpu")
    assert len(model.classify([own_dots.picture("upper left")])) == 1


# The message of a run that was stopped


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle Ctrl-C, even if the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def stopped(
    call: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Train by the command line, interrupted in an update; return the last lines of stderr."""

    def train(update: int, *settings: str, asked: signal.Signals = signal.SIGINT) -> list[str]:
        real = Training._update

        def interrupted(self: Training, *given: Any) -> None:
            if self.position.update == update - 1:
                os.kill(os.getpid(), asked)
            real(self, *given)

        options = [f"--set={setting}" for setting in (*small.settings, *settings)]
        with monkeypatch.context() as context:
            context.setattr(Training, "_update", interrupted)
            out = ("--out", tmp_path / "run", "--device", "cpu", "--resume")
            code, _, error = call("train", small.path, *out, *options)
        assert code == 1 and "Traceback" not in error
        _, _, last = error.partition(f"seq2see: {tmp_path / 'run'}: ")
        return list(last.splitlines())

    yield train


@pytest.mark.usefixtures("interruptible", "scored")
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_where_it_is_and_what_to_use(stopped: Any, asked: Any) -> None:
    assert stopped(1, *EVERY_2, asked=asked) == [
        "stopped; the last checkpoint is update-00000001",
        "its model can be used already: update-00000001, the newest, which is not validated",
        TO_CONTINUE,
    ]
    assert stopped(7, *EVERY_2, asked=asked) == [
        "stopped; the last checkpoint is update-00000007",
        "its model can be used already: update-00000004, the best so far (validation loss 0.100)",
        TO_CONTINUE,
    ]


@pytest.mark.usefixtures("interruptible")
def test_a_stopped_extension_says_that_its_model_stays(stopped: Any, small: Any) -> None:
    small.train("run", *EVERY_2[:2], "train.steps=2")
    assert stopped(3, *EVERY_2) == [
        "stopped; the last checkpoint is update-00000003",
        "its finished model can be used as before",
        TO_CONTINUE,
    ]


def test_a_run_stopped_while_it_is_scored_says_so(
    call: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seq2see.tasks.run.write_scorecard", stop)
    out = tmp_path / "run"
    steps = ("--set", "train.steps=2")
    code, _, error = call("train", small.path, "--out", out, "--device", "cpu", *steps)
    assert code == 1 and error.splitlines()[-3:] == [
        f"seq2see: {out}: stopped; the last checkpoint is update-00000002",
        "its model is finished, but not scored",
        TO_CONTINUE,
    ]


def test_a_run_stopped_before_its_first_checkpoint_says_so(
    call: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Training, "run", interrupted_after(0))
    out = tmp_path / "run"
    code, _, error = call("train", small.path, "--out", out, "--device", "cpu")
    assert code == 1 and error.splitlines()[-3:] == [
        f"seq2see: {out}: stopped before the first checkpoint",
        "there is no model to use yet",
        TO_CONTINUE,
    ]
