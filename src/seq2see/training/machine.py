"""The machine: its number formats, and the load that other processes put on it."""

import os
import time
from collections.abc import Sequence

import psutil
import torch

WINDOW_SECONDS = 10.0
BUSY_CORES = 0.25  # that this process lacks


def product_type(precision: str, device: torch.device) -> torch.dtype:
    """The type of matrix products; bfloat16 is slow where a processor has to imitate it."""
    if precision == "bfloat16" and has_bfloat16(device):
        return torch.bfloat16
    return torch.float32


def has_bfloat16(device: torch.device) -> bool:
    """Whether the processor has instructions for bfloat16."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)  # private: may vanish
    return device.type == "cpu" and bool(probe())


class Load:
    """Cores that other processes use, measured in windows of ten seconds."""

    def __init__(self, threads: int, pids: Sequence[int] = ()) -> None:
        self.threads = threads  # that this process, or those of `pids` together, would keep busy
        self.pids = pids or [os.getpid()]
        self.cores = psutil.cpu_count() or 1
        self.others: float | None = None  # cores in the last window; unknown at first
        self.busy = False
        self.contradictions = 0  # windows in a row that contradict `busy`
        self.patience = 1  # of them until a line says so; doubled with each line
        self.last = self._read()

    def check(self) -> str:
        """Measure if a window is over; return a line if the machine became busy or free."""
        if self.last is None or time.monotonic() - self.last[0] < WINDOW_SECONDS:
            return ""
        before = self.last
        self.last = self._read()
        if self.last is None:
            self.others = None
            return ""
        seconds, busy, own = (now - then for now, then in zip(self.last, before, strict=True))
        self.others = max(0.0, (busy - own) / seconds)
        return self._judge(self.others)

    def _judge(self, others: float) -> str:
        # Cores that this process would not use anyway are no loss.
        missing = others + self.threads - self.cores
        changed = (min(missing, others) > BUSY_CORES) != self.busy
        self.contradictions = self.contradictions + 1 if changed else 0
        if self.contradictions < self.patience:
            return ""
        self.busy = not self.busy
        self.patience *= 2  # the end of a load is soon said; one that comes and goes is not
        self.contradictions = 0
        used = f"other processes use {others:.1f} of {self.cores} cores"
        if self.busy:
            return f"the machine is busy: {used}; training will be slower"
        return f"the machine is free again: {used}"

    def _read(self) -> tuple[float, float, float] | None:
        """Time, and the seconds of all cores and of this run; None where they are hidden."""
        try:
            all_times = psutil.cpu_times()._asdict()
            own = [psutil.Process(pid).cpu_times() for pid in self.pids]
        except (psutil.Error, OSError, NotImplementedError):
            return None
        # Guests are counted among users, too, and on Windows interrupts in the system's time.
        apart = ("idle", "iowait", "guest", "guest_nice", "interrupt", "dpc")
        busy = sum(seconds for kind, seconds in all_times.items() if kind not in apart)
        return time.monotonic(), busy, sum(times.user + times.system for times in own)
