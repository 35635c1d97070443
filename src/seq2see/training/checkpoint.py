"""Checkpoints: everything a run needs to resume, as safetensors and JSON with checksums."""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import nn, optim

from seq2see.errors import InputError, WorkError
from seq2see.files import sha256, sync
from seq2see.models.unfinished import kept_in
from seq2see.models.unfinished import saved_in as saved_in
from seq2see.models.weights import Tensors
from seq2see.training.sharding import placed_like


@dataclass(frozen=True)
class Checkpoint:
    """Named groups of tensors (weights, optimizer, ema) and a JSON-serialisable state."""

    groups: dict[str, Tensors]
    state: dict[str, Any]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write under a temporary name, flush, rename: folders of the final name are complete."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    replaced = folder.with_name(f".{folder.name}.old")
    try:
        for left_over in (temporary, replaced):
            shutil.rmtree(left_over, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, tensors in checkpoint.groups.items():
            safetensors.torch.save_file(tensors, temporary / f"{name}.safetensors")
        saved = {
            "state": checkpoint.state,
            "state_sha256": _checksum(checkpoint.state),
            "sha256": {file.name: sha256(file) for file in sorted(temporary.iterdir())},
        }
        (temporary / "state.json").write_text(json.dumps(saved))
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(temporary, folder)
        shutil.rmtree(replaced, ignore_errors=True)
        sync(folder.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        message = f"{folder}: cannot write the checkpoint: {error}; earlier checkpoints are kept"
        raise WorkError(message) from None


def remove(folder: Path) -> None:
    """Delete a checkpoint under another name: folders of the final name are complete."""
    hidden = folder.with_name(f".{folder.name}.old")
    with contextlib.suppress(OSError):
        os.replace(folder, hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def keep(folder: Path, names: set[str], to_show: Collection[str] = ()) -> None:
    """Remove all checkpoints under a folder but those of these names.

    Those `to_show` that are not among them keep their weights alone.
    """
    for left_over in (*folder.glob(".update-*"), *folder.glob(".kept-*")):  # of a killed process
        shutil.rmtree(left_over, ignore_errors=True)
    for saved in saved_in(folder):
        if saved.name not in names:
            if saved.name in to_show:
                _demote(saved)
            remove(saved)
    for kept in kept_in(folder):
        if kept.name.replace("kept", "update") in to_show:
            _strip(kept)
        else:
            remove(kept)


def _demote(saved: Path) -> None:
    """Rename a checkpoint to a copy of weights, from which no run resumes."""
    kept = saved.with_name(saved.name.replace("update", "kept"))
    remove(kept)
    with contextlib.suppress(OSError):
        os.replace(saved, kept)
        sync(kept.parent)  # before it loses what resuming needs


def _strip(kept: Path) -> None:
    """Delete everything but the weights to use and their checksums."""
    spare = ["optimizer"]
    if (kept / "ema.safetensors").exists():
        spare.append("weights")
    for name in spare:
        with contextlib.suppress(OSError):
            (kept / f"{name}.safetensors").unlink(missing_ok=True)


def last_good(folder: Path) -> str:
    """Say which checkpoint under a folder is the newest."""
    saved = saved_in(folder)
    return f"the last good checkpoint is {saved[-1]}" if saved else "no checkpoint was written yet"


def load(folder: Path) -> Checkpoint:
    """Read a checkpoint; refuse one whose files are missing or do not match their checksums."""
    path = folder / "state.json"
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if _checksum(saved["state"]) != saved["state_sha256"]:
            raise InputError(f"{path}: corrupt: the state does not match its own SHA-256")
        groups = {}
        for name, checksum in saved["sha256"].items():
            file = folder / name
            if sha256(file) != checksum:
                raise InputError(f"{file}: corrupt: its SHA-256 differs from that in state.json")
            groups[file.stem] = safetensors.torch.load_file(file)
        return Checkpoint(groups, saved["state"])
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise InputError(f"{path}: not a readable checkpoint: {error}") from None


def _checksum(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def optimizer_tensors(model: nn.Module, optimizer: optim.Optimizer) -> Tensors:
    """The optimizer's state, named `parameter/entry`."""
    return {
        f"{name}/{entry}": value.contiguous()
        for name, parameter in model.named_parameters()
        for entry, value in optimizer.state[parameter].items()
    }


def copy_into_optimizer(model: nn.Module, optimizer: optim.Optimizer, tensors: Tensors) -> None:
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        name, _, entry = key.rpartition("/")
        parameter = parameters[name]
        # Fused Adam keeps even its step count on the device of the parameter.
        optimizer.state[parameter][entry] = placed_like(parameter, tensor)


def average(folders: list[Path], group: str) -> Tensors:
    """Mean weights of several checkpoints (section 6.1), summed in double precision."""
    total: Tensors = {}
    for folder in folders:
        for name, tensor in load(folder).groups[group].items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(folders)).float() for name, tensor in total.items()}
