"""The engines of translation: PyTorch for model directories, CTranslate2 for exported ones."""

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.ct2 import engine as ct2
from seq2see.ct2.engine import Engine
from seq2see.errors import InputError

if TYPE_CHECKING:
    from seq2see.tasks.translator import Translator

ENGINES = ("torch", "ct2")


def load(
    directory: str | Path,
    device: str = "auto",
    merge: int | None = None,
    *,
    engine: str | None = None,
    alone: bool = False,
) -> "Translator | Engine":
    """Open the directory of a translation model, trained or exported for CTranslate2.

    With `engine`, only a directory for "torch" or for "ct2" is accepted. With `merge`, the encoder
    merges that many tokens in each layer. `alone` gives CTranslate2 one thread, the fastest for a
    single sentence. CTranslate2 translates without importing torch.
    """
    if engine is not None and engine not in ENGINES:
        raise InputError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    exported = ct2.exported(directory)
    if engine == "torch" and exported:
        way = "leave the engine out, or give the model it was exported from"
        raise InputError(f"{directory}: an export for CTranslate2, not for engine 'torch'; {way}")
    if engine == "ct2" or exported:
        if device not in ("auto", "cpu"):
            raise InputError(f"device {device!r}: CTranslate2 runs on the cpu here")
        if merge is not None:
            raise InputError(f"--merge {merge}: CTranslate2 cannot merge tokens; PyTorch can")
        return ct2.load(directory, alone=alone)
    from seq2see.tasks.table import load

    return load(directory, device, merge)
