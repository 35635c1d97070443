"""Faults of a run with several processes: wrong calls, lost and silent ones, signals, restarts."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import safetensors.torch
import torch

import seq2see
from seq2see.cli import main as cli
from seq2see.recipe.schema import Recipe
from seq2see.training import checkpoint
from seq2see.training.loop import Training

SMALL = {
    "train.steps": 9,
    "train.batch_tokens": 100,
    "train.accumulate": 4,
    "train.checkpoint_every": 3,
    "train.validate_sentences": 3,
    "train.label_smoothing": 0.1,
    "model.width": 16,
    "model.dropout": 0.2,
}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def settings(**more: Any) -> list[str]:
    """The options of a small run."""
    keys = SMALL | {name.replace("__", "."): value for name, value in more.items()}
    return [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def assert_same_bits(first: Path, second: Path) -> None:
    one, other = weights(first), weights(second)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def run(processes: Any, size: int, toy: Any, out: Path, *more: object, check: bool = True) -> Any:
    def work(rank: int) -> None:
        sys.argv = ["seq2see", "train", str(toy.path), "--out", str(out), *settings()]
        sys.argv += map(str, more)
        cli.main()

    return processes(size, work, check=check)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"RANK": "0"},
            "RANK set in the environment, but not WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, "
            "MASTER_PORT; torchrun sets all of them",
        ),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE set in the environment, but not RANK, LOCAL_RANK"),
        (
            {"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
            "RANK = 2 must be from 0 to WORLD_SIZE − 1 = 1",
        ),
        ({"RANK": "a", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "RANK = 'a', WORLD_SIZE = '2'"),
    ],
)
def test_impossible_rank_variables_are_refused(
    toy: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    expected: str,
) -> None:
    if "LOCAL_RANK" in variables:
        variables = {"MASTER_ADDR": "localhost", "MASTER_PORT": "1", **variables}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["seq2see", "train", str(toy.path), "--out", "never"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(f"seq2see: {expected}") and len(lines) <= 2


def test_a_rank_that_is_not_the_first_leaves_the_launchers_mistake_to_it(
    toy: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(sys, "argv", ["seq2see", "train", str(toy.path), "--out", "never"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (2, "")


def test_wrong_calls_get_one_line_from_one_rank(
    processes: Any, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ("train", toy.path, "--out", tmp_path / "run", *settings())
    host = os.uname().nodename

    def refused(*arguments: object, **keys: Any) -> str:
        line: str = processes.refused(2, *train, *arguments, **keys)
        assert not (tmp_path / "run" / "recipe.toml").exists()
        return line

    other = refused(each=lambda rank: ["--set", f"train.lr=0.0{rank + 1}"])
    same = "all processes need the same"
    has = f"rank 1 on {host} has train.lr = 0.02, and rank 0 on {host} has 0.01; {same}"
    assert other == has
    other = refused(each=lambda rank: ["--out", tmp_path / f"run-{rank}"])
    assert "has --out = " in other and same in other and "run-1" in other
    # A mistake of all ranks is said once, and one of a single rank by that one.
    assert refused("--set", "train.lr=-1").startswith(f"{toy.path}: train.lr = -1")
    line = refused(each=lambda rank: ["--set", "train.lr=-1"] if rank else [])
    assert line.startswith(f"rank 1 on {host}: {toy.path}: train.lr = -1")
    line = refused("--set", "train.accumulate=1")
    assert re.fullmatch(
        r"an update of train.accumulate = 1 is cut into 1 passes, too few for 2 processes; "
        r"train.accumulate = 2, or larger batches, would be enough",
        line,
    )
    line = refused("--device", "mps")
    assert line.startswith("device 'mps'") or "several processes need" in line


def test_ranks_with_another_corpus_are_refused(processes: Any, toy: Any, tmp_path: Path) -> None:
    folders = [tmp_path / "here", tmp_path / "there"]
    lines = toy.pairs.read_text(encoding="utf-8").splitlines(keepends=True)
    for folder, kept in zip(folders, (lines, lines[1:]), strict=True):
        folder.mkdir()
        (folder / "pairs.tsv").write_text("".join(kept), encoding="utf-8")
    toy.path.write_text(toy.path.read_text().replace(str(toy.pairs), "pairs.tsv"))
    call = ("train", toy.path, "--out", tmp_path / "run", *settings())
    line = processes.refused(2, *call, each=lambda rank: ["--data", folders[rank]])
    assert re.match(r"rank 1 on \S+ has (train|val) = '[0-9a-f]{64}', and rank 0", line)


def test_ranks_of_another_version_are_refused(processes: Any, toy: Any, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        seq2see.__version__ = f"1.{rank}"  # type: ignore[misc]
        sys.argv = ["seq2see", "train", str(toy.path), "--out", str(tmp_path / "run"), *settings()]
        cli.main()

    ended = processes(2, work, check=False)
    host = os.uname().nodename
    has = f"rank 1 on {host} has seq2see = '1.1', and rank 0 on {host} has '1.0'"
    assert (ended.codes, ended.lines) == (
        [2, 2],
        [f"seq2see: {has}; all processes need the same"],
    )


def test_muon_is_not_sharded(toy: Any) -> None:
    with pytest.raises(ValueError, match=r"train.optimizer 'muon' needs whole matrices"):
        Recipe.load(toy.path, ["train.optimizer=muon", "train.shard=full"])
    assert Recipe.load(toy.path).train.shard == "none"


def test_alone_a_sharded_recipe_trains_as_any(toy: Any, tmp_path: Path) -> None:
    for shard in ("none", "full"):
        toy.train(tmp_path / shard, "train.steps=3", f"train.shard={shard}")
    assert_same_bits(tmp_path / "none", tmp_path / "full")


def break_at(update: int, rank: int, how: Any) -> Any:
    """Let one rank of a forked world fail in an update; returns the work of a rank."""
    real = Training._update

    def patched(self: Training, *given: Any) -> None:
        if self.position.update == update and self.world.rank == rank:
            how()
        real(self, *given)

    return patched


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_process_ends_the_others_with_one_line(
    processes: Any, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Training, "_update", break_at(4, lost, die))
    ended = run(processes, 3, toy, tmp_path / "run", check=False)
    codes = [1, 1, 1]
    codes[lost] = -signal.SIGKILL
    assert ended.codes == codes
    (line,) = ended.lines
    assert f"rank {lost} on {os.uname().nodename} has ended unexpectedly" in line
    assert [path.name for path in checkpoint.saved_in(tmp_path / "run" / "checkpoints")] == [
        "update-00000003"
    ]


def test_a_silent_process_is_named_after_the_timeout(
    processes: Any, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang() -> None:
        time.sleep(9)
        os._exit(7)

    monkeypatch.setattr(Training, "_update", break_at(2, 1, hang))
    out = tmp_path / "run"
    ended = run(processes, 2, toy, out, "--set", "train.timeout=0.05", check=False)
    assert ended.codes == [1, 7]
    (line,) = ended.lines
    host = os.uname().nodename
    assert line == f"seq2see: rank 1 on {host} has not answered for 3 s; the checkpoints are kept"


def test_no_space_left_is_said_by_rank_0_alone(
    processes: Any, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    monkeypatch.setattr(Training, "_update", break_at(3, 0, fill_up))
    ended = run(processes, 2, toy, tmp_path / "run", check=False)
    assert ended.codes == [1, 1]
    (line,) = ended.lines
    assert "cannot write the checkpoint" in line and "earlier checkpoints are kept" in line


class Torchrun:
    """A command under torchrun, in the background."""

    def __init__(self, *arguments: object, log: Path) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.log = log
        with log.open("w") as file:
            command = [*TORCHRUN, *map(str, arguments)]
            self.process = subprocess.Popen(command, stderr=file, stdout=file, env=environment)

    def wait_for(self, pattern: str, path: Path | None = None) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            path = path or self.log
            if path.exists() and re.search(pattern, path.read_text(encoding="utf-8")):
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        pytest.fail(self.log.read_text())

    def workers(self) -> list[psutil.Process]:
        children: list[psutil.Process] = psutil.Process(self.process.pid).children()
        return [child for child in children if "seq2see" in child.cmdline()]

    def worker(self, rank: int) -> psutil.Process:
        (worker,) = (one for one in self.workers() if one.environ()["RANK"] == str(rank))
        return worker

    def end(self) -> tuple[int, str]:
        code = self.process.wait(timeout=180)
        return code, self.log.read_text(encoding="utf-8")


OTHER_VERSION = """
import os
import {package}
from seq2see.cli import main

if os.environ["RANK"] == "1":
    {package}.__version__ = "0.1"
main.main()
"""


@pytest.mark.parametrize("package", [seq2see, torch])
def test_another_version_under_torchrun_is_one_line(toy: Any, tmp_path: Path, package: Any) -> None:
    name, version = package.__name__, package.__version__
    start = tmp_path / "start.py"
    start.write_text(OTHER_VERSION.format(package=name))
    call = ("train", toy.path, "--out", tmp_path / "run", *settings())
    options = ("--standalone", "--nproc-per-node", 2)
    code, said = Torchrun(*options, start, *call, log=tmp_path / "log").end()
    host = os.uname().nodename
    has = f"rank 1 on {host} has {name} = '0.1', and rank 0 on {host} has"
    lines = [line for line in said.splitlines() if line.startswith("seq2see: ")]
    same = "all processes need the same"
    assert lines == [f"seq2see: {has} '{version}'; {same}"]
    assert code == 1
    assert not (tmp_path / "run").exists()


def test_a_run_with_killed_ranks_is_restarted_and_ends_in_the_same_bits(
    processes: Any, toy: Any, tmp_path: Path
) -> None:
    more = settings(train__steps=60, train__checkpoint_every=10)
    call = ("-m", "seq2see", "train", toy.path, "--out", tmp_path / "killed", *more)
    options = ("--standalone", "--nproc-per-node", 2, "--max-restarts", 2)
    torchrun = Torchrun(*options, *call, log=tmp_path / "log")
    torchrun.wait_for('"validation"', tmp_path / "killed" / "log.jsonl")
    torchrun.worker(rank=0).kill()
    torchrun.wait_for("continuing from ")
    torchrun.worker(rank=1).kill()
    code, said = torchrun.end()
    assert code == 0, said
    assert said.count("continuing from ") == 2
    run(processes, 2, toy, tmp_path / "whole", *more)
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")


def test_a_preempted_run_saves_and_says_how_to_go_on(
    processes: Any, toy: Any, tmp_path: Path
) -> None:
    """Two machines, both on this one; a scheduler sends SIGTERM to everything."""
    more = settings(train__steps=100_000, train__checkpoint_every=50_000)
    out = tmp_path / "run"
    port = processes.port()
    nodes = [
        Torchrun(
            *("--nnodes", 2, "--nproc-per-node", 1, "--node-rank", node),
            *("--master-addr", "127.0.0.1", "--master-port", port),
            *("-m", "seq2see", "train", toy.path, "--out", out, *more),
            log=tmp_path / f"node-{node}",
        )
        for node in range(2)
    ]
    nodes[0].wait_for('"event": "update"', out / "log.jsonl")
    workers = [worker for node in nodes for worker in node.workers()]
    for one in (*workers, *(node.process for node in nodes)):
        one.send_signal(signal.SIGTERM)
    said = "".join(node.end()[1] for node in nodes)
    assert said.count("to continue: the same command with --resume") == 1, said
    assert said.count("stopped; the last checkpoint is update-") == 1
    assert 'Traceback (most recent call last):\n  File "/' not in said.split("to continue")[0]
    (saved,) = checkpoint.saved_in(out / "checkpoints")
    update = json.loads((saved / "state.json").read_text())["state"]["update"]
    assert 0 < update < 100_000
    again = {"train__steps": update + 2, "train__checkpoint_every": 50_000}
    run(processes, 2, toy, out, *settings(**again), "--resume")
    numbers = [
        json.loads(line)["updates"]
        for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
        if '"chosen"' in line
    ]
    assert numbers == [update + 2]
