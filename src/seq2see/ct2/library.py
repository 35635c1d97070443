"""The CTranslate2 library beside PyTorch, and the cores that both use."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from seq2see.errors import InputError


def library() -> Any:
    """Import CTranslate2 when it is needed; it is an optional dependency."""
    try:
        import ctranslate2
    except ImportError:
        raise InputError("CTranslate2 is not installed: pip install ctranslate2") from None
    return ctranslate2


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Restore PyTorch's number of threads, which CTranslate2 changes, if PyTorch is in use."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(threads)
