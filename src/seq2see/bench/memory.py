"""Peak memory: of a call, counted by torch's allocator, and of this process, as resident memory."""

import resource
import sys
from collections.abc import Callable
from pathlib import Path


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the peak of the bytes that torch's allocator handed out during a call.

    Counted, not sampled, so it is the same each time. On one thread, since the fused kernel has a
    buffer per thread: with many cores the buffers would outweigh all that grows with the length.
    """
    import torch  # here: a CTranslate2 worker runs without torch
    from torch.profiler import ProfilerActivity, profile

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as record:
        call()
    torch.set_num_threads(threads)
    assert record.profiler is not None and record.profiler.kineto_results is not None
    events = [
        event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    held = 0
    peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def peak_resident_mb() -> float:
    """Return the peak resident memory of this process."""
    try:
        # Not ru_maxrss: on Linux a process inherits its parent's, and the parent has loaded torch.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return next(
            int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")
        )
    except (OSError, StopIteration):
        scale = 2**20 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
