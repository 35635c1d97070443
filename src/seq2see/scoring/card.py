"""Score card of a model: its scores with the software and hardware that they were measured with."""

import platform
from importlib import metadata
from typing import Any

import psutil
import torch

import seq2see

LIBRARIES = ("numpy", "sacrebleu", "sentencepiece", "torch")


def card(tests: dict[str, dict[str, Any]], **about: Any) -> dict[str, Any]:
    """Everything needed to trust or repeat the scores of the test sets."""
    versions = {"seq2see": seq2see.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in LIBRARIES}
    return {"tests": tests, **about, "versions": versions, "machine": machine()}


def machine() -> dict[str, Any]:
    """Describe this computer as far as it explains speed."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # only Linux has the file
    return platform.processor() or platform.machine()
