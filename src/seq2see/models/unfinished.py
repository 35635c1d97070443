"""Checkpoints as models: the one that serves an unfinished run, and those kept to look into."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.errors import InputError
from seq2see.files import sha256


@dataclass(frozen=True)
class Usable:
    """A checkpoint to use as a model."""

    folder: Path
    about: str  # its name and why it was chosen

    def weights(self) -> Path:
        """The file of the weights to use: their moving average where there is one."""
        checksums = _read(self.folder)["sha256"]
        name = "ema.safetensors" if "ema.safetensors" in checksums else "weights.safetensors"
        path = self.folder / name
        if not path.is_file() or sha256(path) != checksums.get(name):
            raise InputError(f"{path}: corrupt: its SHA-256 differs from that in state.json")
        return path


def saved_in(folder: Path) -> list[Path]:
    """The checkpoints under a run's `checkpoints/`, oldest first."""
    return sorted(path for path in folder.glob("update-*") if path.is_dir())


def kept_in(folder: Path) -> list[Path]:
    """The copies of weights under a run's `checkpoints/` that are kept to look into."""
    return sorted(path for path in folder.glob("kept-*") if path.is_dir())


def update_of(folder: Path) -> int:
    """The update at which a checkpoint or a copy was saved."""
    return int(folder.name.partition("-")[2])


def usable(run: Path, choose: str) -> Usable | None:
    """The best validated checkpoint of a run by the figure `choose`, else the newest."""
    saved = {folder.name: folder for folder in saved_in(run / "checkpoints")}
    if not saved:
        return None
    newest = max(saved)
    scores = _read(saved[newest])["validations"]
    validated = {name: score for name, score in scores.items() if name in saved}
    if not validated:
        return Usable(saved[newest], f"{newest}, the newest, which is not validated")
    best = max(validated, key=lambda name: validated[name])
    figure = f"validation {choose} {abs(validated[best]):.3f}"
    return Usable(saved[best], f"{best}, the best so far ({figure})")


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "state.json"
    try:
        saved = json.loads(path.read_bytes())
        return {
            "validations": dict(saved["state"]["validations"]),
            "sha256": dict(saved["sha256"]),
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a readable checkpoint: {error!r}") from None
