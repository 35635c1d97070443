"""Checkpoints: complete or absent, verified on reading, and never executable."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from seq2see.errors import InputError, WorkError
from seq2see.models.weights import copy_into, weights
from seq2see.training import checkpoint
from seq2see.training.checkpoint import Checkpoint
from seq2see.training.optimizer import adam


def example(value: float = 1.0) -> Checkpoint:
    groups = {
        "weights": {"a": torch.full((2, 3), value), "b": torch.arange(5.0) + value},
        "optimizer": {"w/step": torch.tensor(3.0)},
    }
    return Checkpoint(groups, {"update": 3, "scores": {"x": -0.5}})


def same(first: Checkpoint, second: Checkpoint) -> bool:
    return first.state == second.state and all(
        torch.equal(tensor, second.groups[group][name])
        for group, tensors in first.groups.items()
        for name, tensor in tensors.items()
    )


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        checkpoint.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_round_trip(tmp_path: Path) -> None:
    saved = example()
    folder = tmp_path / "checkpoints" / "update-1"
    checkpoint.save(folder, saved)
    loaded = checkpoint.load(folder)
    assert loaded.groups.keys() == saved.groups.keys() and same(saved, loaded)
    assert [path.name for path in folder.parent.iterdir()] == ["update-1"]


def test_only_tensors_and_json_are_written(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "update-1", example())
    for path in (tmp_path / "update-1").iterdir():
        assert path.suffix in (".json", ".safetensors")
        if path.suffix == ".json":
            json.loads(path.read_text())
        else:
            header = int.from_bytes(path.read_bytes()[:8], "little")
            json.loads(path.read_bytes()[8 : 8 + header])


def test_a_flipped_byte_anywhere_in_the_weights_is_detected(tmp_path: Path) -> None:
    folder = tmp_path / "update-1"
    checkpoint.save(folder, example())
    path = folder / "weights.safetensors"
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        assert refusal(folder).startswith(f"{path}: corrupt")
    path.write_bytes(content)
    checkpoint.load(folder)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "update-1"
    assert str(folder) in refusal(folder)
    checkpoint.save(folder, example())
    tensors, state = folder / "weights.safetensors", folder / "state.json"
    content, text = tensors.read_bytes(), state.read_text()
    tensors.write_bytes(content[:-1])
    assert refusal(folder).startswith(f"{tensors}: corrupt")
    tensors.unlink()
    assert str(tensors) in refusal(folder)
    tensors.write_bytes(content)
    for broken in (
        "",
        text[:-9],
        "[]",
        "null",
        '{"state": {}}',
        '{"state": {}, "sha256": 3}',
        "\x00",
    ):
        state.write_text(broken)
        assert str(state) in refusal(folder)
    state.write_bytes(b"\xff")
    assert str(state) in refusal(folder)
    state.write_text(text)
    assert same(checkpoint.load(folder), example())


class Crash(BaseException):
    """Simulated kill: no Exception, so that nothing catches it."""


@pytest.mark.parametrize("over", ["another", "the same"])
@pytest.mark.parametrize("moment", range(7))
def test_a_crash_while_saving_leaves_the_older_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, over: str
) -> None:
    older = tmp_path / "update-1"
    checkpoint.save(older, example(1.0))
    newer = tmp_path / "update-2" if over == "another" else older
    calls = 0

    def crashing(module: object, name: str) -> None:
        real = getattr(module, name)

        def call(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls > moment:
                raise Crash
            return real(*arguments)

        monkeypatch.setattr(module, name, call)

    crashing(os, "replace")
    crashing(checkpoint, "sync")
    crashing(checkpoint, "sha256")
    try:
        checkpoint.save(newer, example(2.0))
        crashed = False
    except Crash:
        crashed = True
    monkeypatch.undo()
    assert crashed
    for folder in checkpoint.saved_in(tmp_path):
        expected = [example(1.0)] if folder != newer else [example(1.0), example(2.0)]
        assert any(same(checkpoint.load(folder), one) for one in expected)
    assert over == "the same" or older in checkpoint.saved_in(tmp_path)
    (tmp_path / f".{newer.name}.old").mkdir(exist_ok=True)
    (tmp_path / f".{newer.name}.old" / "state.json").write_text("{}")
    checkpoint.save(newer, example(3.0))  # left-over folders do not matter
    assert same(checkpoint.load(newer), example(3.0))


@pytest.mark.parametrize("at", ["save_file", "fsync", "replace"])
def test_a_full_disk_is_one_line_and_keeps_the_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    checkpoint.save(tmp_path / "update-1", example())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint.safetensors.torch if at == "save_file" else os, at, full)
    with pytest.raises(WorkError) as caught:
        checkpoint.save(tmp_path / "update-2", example())
    monkeypatch.undo()
    message = str(caught.value)
    assert (
        message.startswith(f"{tmp_path}/update-2: cannot write the checkpoint: ")
        and "\n" not in message
    )
    assert "No space left" in message and "earlier checkpoints are kept" in message
    assert [path.name for path in tmp_path.iterdir()] == ["update-1"]
    checkpoint.load(tmp_path / "update-1")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        WorkError, match=r"file/update-1: cannot write the checkpoint: .*Not a directory"
    ):
        checkpoint.save(tmp_path / "file" / "update-1", example())


def test_checkpoints_are_listed_oldest_first_without_unfinished_ones(tmp_path: Path) -> None:
    for name in ("update-00000010", "update-00000009", ".update-00000011.tmp", "events"):
        (tmp_path / name).mkdir()
    (tmp_path / "update-note").write_text("")
    assert [path.name for path in checkpoint.saved_in(tmp_path)] == [
        "update-00000009",
        "update-00000010",
    ]
    assert checkpoint.saved_in(tmp_path / "nothing") == []


def test_a_checkpoint_is_never_seen_half_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("update-1", "update-2"):
        checkpoint.save(tmp_path / name, example())
    with monkeypatch.context() as context:
        context.setattr(checkpoint.shutil, "rmtree", lambda *_, **__: None)  # killed before it
        checkpoint.remove(tmp_path / "update-1")
    assert [path.name for path in checkpoint.saved_in(tmp_path)] == ["update-2"]
    checkpoint.remove(tmp_path / "update-2")
    assert not (tmp_path / "update-2").exists() and not (tmp_path / ".update-2.old").exists()
    checkpoint.remove(tmp_path / "update-2")  # it may be gone already


def test_average_is_the_mean(tmp_path: Path) -> None:
    for update, value in enumerate((1.0, 2.0, 6.0)):
        checkpoint.save(tmp_path / f"update-{update}", example(value))
    mean = checkpoint.average(checkpoint.saved_in(tmp_path), "weights")
    assert torch.equal(mean["a"], torch.full((2, 3), 3.0)) and torch.equal(
        mean["b"], torch.arange(5.0) + 3
    )
    assert mean["a"].dtype == torch.float32


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.output = nn.Linear(3, 5)
        self.output.weight = self.embedding.weight


def test_a_tied_weight_appears_once_and_is_copied_into_both() -> None:
    first, second = Tied(), Tied()
    tensors = weights(first)
    assert tensors.keys() == {"embedding.weight", "output.bias"}
    copy_into(second, tensors, "here")
    assert torch.equal(second.output.weight, first.embedding.weight)
    assert second.output.weight is second.embedding.weight


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"output.bias": None}, "here: no weight 'output.bias'"),
        ({"extra": torch.zeros(1)}, "here: unknown weight 'extra'"),
        (
            {"output.bias": torch.zeros(4)},
            r"here: weight 'output.bias' has shape \(4,\), and the recipe's model has \(5,\)",
        ),
        ({"output.bias": torch.zeros(5, 1)}, r"here: weight 'output.bias' has shape \(5, 1\)"),
    ],
)
def test_weights_of_another_model_are_refused_by_name(
    change: dict[str, torch.Tensor | None], says: str
) -> None:
    changed = weights(Tied()) | change
    tensors = {name: tensor for name, tensor in changed.items() if tensor is not None}
    with pytest.raises(InputError, match=says):
        copy_into(Tied(), tensors, "here")


def test_a_restored_optimizer_takes_the_same_steps(tmp_path: Path) -> None:
    def step(model: Tied, optimizer: torch.optim.Optimizer, seed: int) -> None:
        torch.manual_seed(seed)
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        model.output(model.embedding(torch.randint(5, (4,)))).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    first, second = Tied(), Tied()
    optimizer, other = adam(first.parameters()), adam(second.parameters())
    for seed in range(3):
        step(first, optimizer, seed)
    groups = {
        "weights": weights(first),
        "optimizer": checkpoint.optimizer_tensors(first, optimizer),
    }
    checkpoint.save(tmp_path / "update-3", Checkpoint(groups, {}))
    loaded = checkpoint.load(tmp_path / "update-3").groups
    copy_into(second, loaded["weights"], "here")
    checkpoint.copy_into_optimizer(second, other, loaded["optimizer"])
    step(first, optimizer, 9)
    step(second, other, 9)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_a_changed_state_is_detected(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "update-1", example())
    path = tmp_path / "update-1" / "state.json"
    saved = json.loads(path.read_text())
    key = next(iter(saved["state"]))
    saved["state"][key] = "other"
    path.write_text(json.dumps(saved))
    assert "update-1/state.json: corrupt" in refusal(tmp_path / "update-1")


def with_average() -> Checkpoint:
    return Checkpoint(example().groups | {"ema": {"a": torch.full((2, 3), 7.0)}}, {})


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("saved", "weights"), [(example(), "weights"), (with_average(), "ema")], ids=["own", "average"]
)
def test_what_is_kept_to_show_holds_the_weights_to_use_alone(
    tmp_path: Path, saved: Checkpoint, weights: str
) -> None:
    for number in (1, 2, 3, 4):
        checkpoint.save(tmp_path / f"update-{number}", saved)
    checkpoint.keep(tmp_path, {"update-4", "update-1"}, ["update-1", "update-3"])
    assert names_in(tmp_path) == ["kept-3", "update-1", "update-4"]
    assert names_in(tmp_path / "kept-3") == sorted([f"{weights}.safetensors", "state.json"])
    kept = safetensors.torch.load_file(tmp_path / "kept-3" / f"{weights}.safetensors")
    assert same(Checkpoint({weights: kept}, saved.state), saved)
    assert [path.name for path in checkpoint.saved_in(tmp_path)] == ["update-1", "update-4"]
    checkpoint.keep(tmp_path, {"update-4"}, ["update-1"])
    assert names_in(tmp_path) == ["kept-1", "update-4"]
    checkpoint.keep(tmp_path, {"update-4"})
    assert names_in(tmp_path) == ["update-4"]


@pytest.mark.parametrize("died", ["replace", "unlink", "rmtree"])
def test_a_kill_while_weights_are_kept_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died: str
) -> None:
    class Killed(BaseException):
        pass

    def dying(*given: Any, **keys: Any) -> None:
        raise Killed

    for number in (1, 2, 3):
        checkpoint.save(tmp_path / f"update-{number}", with_average())
    place: Any = {"replace": os, "unlink": Path, "rmtree": checkpoint.shutil}[died]
    with monkeypatch.context() as context, pytest.raises(Killed):
        context.setattr(place, died, dying)
        checkpoint.keep(tmp_path, {"update-3"}, ["update-2"])
    for saved in checkpoint.saved_in(tmp_path):
        assert same(checkpoint.load(saved), with_average())  # none lacks anything
    checkpoint.keep(tmp_path, {"update-3"}, ["update-2"])
    assert names_in(tmp_path) == ["kept-2", "update-3"]
    assert names_in(tmp_path / "kept-2") == ["ema.safetensors", "state.json"]
