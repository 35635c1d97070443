"""What layers cost, measured in a process of its own: a job in by stdin, figures out by stdout, progress on stderr.

In a process of its own, memory that a call gives back can be kept for the next one (see `bench/attention.py`): the
operating system then hands out pages once and not in each call, where it would take more time than the layer.
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from seq2see.layers.attention import attend
from seq2see.layers.windows import attend_window

KERNEL = 3  # positions that a convolution sees at once
AT_LEAST = 0.005  # seconds of one measurement; short calls are repeated
PASSES = ("forward", "training")  # without gradients; forward and backward


@dataclass(frozen=True)
class Job:
    """What to measure."""

    kinds: list[str]
    lengths: list[int]
    width: int
    batch: int
    reach: int  # of the window, to each side
    seconds: float  # rounds begin as long as they end within; one in any case


@dataclass(frozen=True)
class Measured:
    """One pass of one layer at one length."""

    kind: str
    length: int
    what: str  # forward or training
    peak_bytes: int  # allocated during the call at once, beyond what was there before
    seconds: list[float]  # of a call, by round


class Layer(nn.Module):
    """One layer of each kind, (B, S, D) → (B, S, D), bare: attention has no projections."""

    def __init__(self, kind: str, width: int, reach: int) -> None:
        super().__init__()
        self.kind, self.reach = kind, reach
        self.inner: nn.Module | None = None
        if kind == "recurrent":
            self.inner = nn.LSTM(width, width, batch_first=True)
        elif kind == "convolutional":
            self.inner = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The output, and the weights if this kind keeps them."""
        if self.kind == "recurrent" and self.inner is not None:
            return self.inner(x)[0], None
        if self.kind == "convolutional" and self.inner is not None:
            return self.inner(x.transpose(1, 2)).transpose(1, 2), None
        heads = x[
            :, None
        ]  # (B, 1, S, D): the fused kernel takes sentences and heads, and nothing less
        if self.kind == "window":
            output, weights = attend_window(heads, heads, heads, self.reach)
        else:
            output, weights = attend(
                heads, heads, heads, need_weights=self.kind == "self_attention"
            )
        return output[:, 0], weights


def call(layer: Layer, x: Tensor, what: str) -> list[Tensor | None]:
    """Forward, or forward and backward; what comes of it is held until the caller lets it go."""
    with torch.set_grad_enabled(what == "training"):
        output, weights = layer(x)
    held = [output, weights]
    if what == "training":
        held += torch.autograd.grad(output, [x, *layer.parameters()], torch.ones_like(output))
    return held


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes that torch's allocator gave out at once during a call: counted, so the same each time.

    With one thread, since the fused kernel has a buffer for each: on many cores they would outweigh all that grows.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as watched:
        run()
    torch.set_num_threads(threads)
    assert watched.profiler is not None and watched.profiler.kineto_results is not None
    events = [
        event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    now = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest


def seconds_of(run: Callable[[], object]) -> float:
    """Of one call, in the mean of as many as make a measurement."""
    begun, calls, spent = time.perf_counter(), 0, 0.0
    while not calls or spent < AT_LEAST:
        run()
        calls += 1
        spent = time.perf_counter() - begun
    return spent / calls


def measure(job: Job, say: Callable[[str], None]) -> list[Measured]:
    """Warm up and count memory, then time all in turn, round after round.

    What disturbs the machine for a while disturbs a round of each, and medians do not show it.
    """
    begun = time.perf_counter()
    torch.manual_seed(1)
    runs, found = [], []
    # The longest first: the memory that it needs is then there for all others.
    for length in sorted(job.lengths, reverse=True):
        say(f"memory and warm-up · length {length}")
        for kind, what, run in _runs(job, length):
            run()
            runs.append(run)
            found.append(Measured(kind, length, what, peak_bytes(run), []))
    rounds, started = 0, time.perf_counter()
    while not rounds or (time.perf_counter() - started) * (rounds + 1) / rounds <= job.seconds - (
        started - begun
    ):
        rounds += 1
        say(f"round {rounds} · {time.perf_counter() - begun:.0f} of {job.seconds:g} s")
        for run, each in zip(runs, found, strict=True):
            each.seconds.append(seconds_of(run))
    return found


def _runs(job: Job, length: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    x = torch.randn(job.batch, length, job.width, requires_grad=True)
    for kind in job.kinds:
        layer = Layer(kind, job.width, job.reach)
        for what in PASSES:
            yield kind, what, functools.partial(call, layer, x, what)


def main() -> None:
    """Read the job, print what was measured; a failure is the last line of stderr."""
    job = Job(**json.load(sys.stdin))
    try:
        found = measure(job, lambda line: print(line, file=sys.stderr, flush=True))
    except (
        RuntimeError,
        MemoryError,
    ) as error:  # torch says with the first that there is no memory left
        sys.exit(" ".join(str(error).split()) or "not enough memory")
    json.dump([asdict(each) for each in found], sys.stdout)


if __name__ == "__main__":
    main()
