"""Interrupted runs: killed, stopped or resumed, they end in the same bits."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.models.unfinished import kept_in, update_of
from seq2see.tasks import run
from seq2see.training import checkpoint
from seq2see.training.loop import Training

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def without_time(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    measured = ("seconds", "validation_seconds", "memory_mb", "processor_percent")
    return [{key: value for key, value in event.items() if key not in measured} for event in events]


@pytest.mark.parametrize(
    ("budget", "kills"),
    [
        # An epoch has 4 updates here (7 batches), so 3 and 6 are in its middle, 4 and 8 at its end.
        # The first is killed before a checkpoint, on one, and between two.
        (("train.steps=11", "train.checkpoint_every=3"), (2, 3, 2)),
        (("train.steps=11", "train.checkpoint_every=4"), (4, 5)),  # where an epoch ends
        (("train.epochs=3",), (4, 6)),
        (("train.epochs=3", "train.checkpoint_every=3"), (5, 4, 4)),
        (("train.steps=10", "train.batch_sentences=40"), (5, 3)),  # a checkpoint each tenth
        (("train.steps=9", "train.checkpoint_every=4", "train.optimizer=muon"), (5, 2)),
    ],
)
def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    small: Any,
    monkeypatch: pytest.MonkeyPatch,
    killed_after: Any,
    budget: tuple[str, ...],
    kills: tuple[int, ...],
) -> None:
    monkeypatch.setattr(run, "workers_for", lambda *_: 2)
    small.train("whole", *budget)
    for updates in kills:
        with killed_after(updates):
            small.train("parts", *budget, resume=True)
    small.train("parts", *budget, resume=True)
    assert "continuing from" in small.said.getvalue()
    assert small.equal("whole", "parts")
    assert without_time(small.log("whole", "chosen")) == without_time(small.log("parts", "chosen"))
    ends = [small.log(name, "validation")[-1] for name in ("whole", "parts")]
    assert without_time(ends[:1]) == without_time(ends[1:])


def checkpoints(folder: Path) -> dict[str, list[str]]:
    """The files of each checkpoint of a run."""
    folders = (path for path in (folder / "checkpoints").iterdir() if path.is_dir())
    return {path.name: sorted(file.name for file in path.iterdir()) for path in folders}


@pytest.mark.parametrize("kills", [(1, 1, 3), (4, 2), (9,)])
def test_a_run_killed_and_resumed_keeps_the_same_checkpoints_to_show(
    small: Any, tmp_path: Path, killed_after: Any, kills: tuple[int, ...]
) -> None:
    budget = ("train.steps=10", "train.checkpoint_every=1", "train.keep=3")
    small.train("whole", *budget)
    for updates in kills:
        with killed_after(updates):
            small.train("parts", *budget, resume=True)
    small.train("parts", *budget, resume=True)
    assert checkpoints(tmp_path / "parts") == checkpoints(tmp_path / "whole")
    kept = kept_in(tmp_path / "whole" / "checkpoints")
    assert [update_of(folder) for folder in kept] == [1, 5]  # and 9 is averaged
    for folder in kept:
        there = tmp_path / "parts" / "checkpoints" / folder.name / "ema.safetensors"
        assert there.read_bytes() == (folder / "ema.safetensors").read_bytes()
    assert small.equal("whole", "parts")


def test_a_run_continues_with_fewer_checkpoints_to_show_or_more(
    small: Any, tmp_path: Path, killed_after: Any
) -> None:
    budget = ("train.steps=9", "train.checkpoint_every=1", "train.average=1")
    small.train("whole", *budget)
    for keep, updates in ((4, 4), (0, 1), (9, 3)):
        with killed_after(updates):
            small.train("parts", *budget, f"train.keep={keep}", resume=True)
        kept = [update_of(folder) for folder in kept_in(tmp_path / "parts" / "checkpoints")]
        assert kept == {4: [1, 2, 3], 0: [], 9: [5, 6, 7]}[keep]
    small.train("parts", *budget, "train.keep=9", resume=True)
    assert small.equal("whole", "parts")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle Ctrl-C, even if the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("asked", SIGNALS)
# In an epoch, at its end, at the last update.
@pytest.mark.parametrize("stops", [(2, 1), (4,), (3, 5), (1, 11)])
def test_a_run_asked_to_stop_loses_nothing(
    small: Any,
    monkeypatch: pytest.MonkeyPatch,
    stops: tuple[int, ...],
    asked: signal.Signals,
) -> None:
    # Epochs of 4 updates each, with a checkpoint at the end.
    budget = ("train.epochs=3", "train.average=2")
    small.train("whole", *budget)
    handlers = [signal.getsignal(number) for number in SIGNALS]
    done = []
    for updates in stops:
        real, until = Training._update, len(done) + updates

        def update(self: Training, *given: Any, real: Any = real, until: int = until) -> None:
            done.append(given)
            if len(done) == until:
                os.kill(os.getpid(), asked)  # while the update is under way
            real(self, *given)

        with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
            context.setattr(Training, "_update", update)
            small.train("parts", *budget, resume=True)
        assert len(done) == until
        assert "stopping after this update" in small.said.getvalue()
        assert [signal.getsignal(number) for number in SIGNALS] == handlers
    small.train("parts", *budget, resume=True)
    assert small.equal("whole", "parts")
    assert without_time(small.log("whole", "chosen")) == without_time(small.log("parts", "chosen"))
    numbers = [event["update"] for event in small.log("parts", "update")]
    assert len(numbers) == len(set(numbers)), "an update was done twice"


@pytest.mark.usefixtures("interruptible")
def test_a_second_signal_stops_immediately(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(self: Training, *_: Any) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # if another thread takes the signal, it needs a moment to get here
        pytest.fail("continued after two signals")

    monkeypatch.setattr(Training, "_update", update)
    with pytest.raises(KeyboardInterrupt):
        small.train("run", "train.steps=3")
    assert not checkpoint.saved_in(tmp_path / "run" / "checkpoints")


@pytest.mark.usefixtures("interruptible")
def test_an_ignored_signal_stays_ignored(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    real = Training._update

    def update(self: Training, *given: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(self, *given)

    monkeypatch.setattr(Training, "_update", update)
    small.train("run", "train.steps=2")
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_run_in_another_thread_leaves_signals_alone(small: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(small.train, "run", "train.steps=2").result()
    assert (tmp_path / "run" / "model.safetensors").exists()


class Crash(BaseException):
    """Simulated kill: nothing in the code catches it."""


def test_a_kill_while_a_checkpoint_is_written_costs_only_that_one(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = ("train.steps=8", "train.checkpoint_every=3")
    small.train("whole", *budget)
    real = checkpoint.sha256

    def dying(path: Path) -> str:
        if "update-00000006" in str(path):
            raise Crash
        return real(path)

    with monkeypatch.context() as context, pytest.raises(Crash):
        context.setattr(checkpoint, "sha256", dying)
        small.train("parts", *budget)
    (saved,) = checkpoint.saved_in(tmp_path / "parts" / "checkpoints")
    assert saved.name == "update-00000003"
    small.train("parts", *budget, resume=True)
    assert small.equal("whole", "parts")


def test_the_same_recipe_gives_the_same_bits_and_another_seed_others(
    small: Any,
) -> None:
    for name, seed in (("first", 1), ("second", 1), ("third", 2)):
        small.train(name, "train.steps=6", f"train.seed={seed}")
    assert small.equal("first", "second")
    first, second = (small.log(name, "validation") for name in ("first", "second"))
    assert without_time(first) == without_time(second)
    assert not small.equal("first", "third")


def test_a_killed_process_is_resumed(small: Any, tmp_path: Path) -> None:
    budget = ("train.steps=40", "train.checkpoint_every=4")
    settings = [f"--set={override}" for override in (*small.settings, *budget)]
    main = "from seq2see.cli.main import main; main()"
    call = [sys.executable, "-c", main, "train", str(small.path)]
    call += ["--out", str(tmp_path / "parts"), "--device", "cpu", "--resume", *settings]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(call, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 60
    while not checkpoint.saved_in(tmp_path / "parts" / "checkpoints"):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    small.train("parts", *budget, resume=True)
    small.train("whole", *budget)
    assert "continuing from" not in small.said.getvalue()
    assert small.equal("whole", "parts")


def test_a_corrupt_checkpoint_is_named(small: Any, tmp_path: Path, killed_after: Any) -> None:
    with killed_after(2):
        small.train("run", "train.checkpoint_every=2")
    path = tmp_path / "run" / "checkpoints" / "update-00000002" / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"update-00000002/optimizer.safetensors: corrupt"):
        small.train("run", "train.checkpoint_every=2", resume=True)


def test_without_a_corrupt_checkpoint_a_run_continues_from_the_one_before(
    small: Any, tmp_path: Path, killed_after: Any
) -> None:
    settings = ("train.checkpoint_every=2", "train.average=2", "train.steps=8")
    with killed_after(6):
        small.train("run", *settings)
    newest = tmp_path / "run" / "checkpoints" / "update-00000006"
    (newest / "state.json").write_text("{}")
    says = r"without .*update-00000006 the run continues from update-00000004$"
    with pytest.raises(InputError, match=says):
        small.train("run", *settings, resume=True)
    shutil.rmtree(newest)
    small.train("run", *settings, resume=True)
    small.train("whole", *settings)
    assert small.equal("run", "whole")
