"""Time and memory of layers, measured in a process of its own.

Its allocator can then keep freed memory between calls (ENVIRONMENT in `bench/attention.py`).
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from seq2see.bench.memory import peak_bytes
from seq2see.bench.rounds import rounds
from seq2see.layers.attention import attend
from seq2see.layers.windows import attend_window

KERNEL = 3  # positions in the receptive field of a convolution
AT_LEAST = 0.005  # seconds per measurement; short calls are repeated
PASSES = ("forward", "training")  # without gradients; forward and backward


@dataclass(frozen=True)
class Job:
    """Input of the worker."""

    kinds: list[str]
    lengths: list[int]
    width: int
    batch: int
    reach: int  # of the window, to each side
    seconds: float  # budget, warm-up included; one round runs in any case


@dataclass(frozen=True)
class Measured:
    """One pass of one layer at one length."""

    kind: str
    length: int
    what: str  # forward or training
    peak_bytes: int  # allocated during the call
    seconds: list[float]  # per call, by round


class Layer(nn.Module):
    """A bare layer of any kind, (B, S, D) → (B, S, D); attention has no projections."""

    def __init__(self, kind: str, width: int, reach: int) -> None:
        super().__init__()
        self.kind = kind
        self.reach = reach
        self.inner: nn.Module | None = None
        if kind == "recurrent":
            self.inner = nn.LSTM(width, width, batch_first=True)
        elif kind == "convolutional":
            self.inner = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the output, and the weights if this kind keeps them."""
        if self.kind == "recurrent" and self.inner is not None:
            return self.inner(x)[0], None
        if self.kind == "convolutional" and self.inner is not None:
            return self.inner(x.transpose(1, 2)).transpose(1, 2), None
        heads = x[:, None]  # (B, 1, S, D): the fused kernel needs a dimension of heads
        if self.kind == "window":
            output, weights = attend_window(heads, heads, heads, self.reach)
        else:
            keep = self.kind == "self_attention"
            output, weights = attend(heads, heads, heads, need_weights=keep)
        return output[:, 0], weights


def call(layer: Layer, x: Tensor, what: str) -> list[Tensor | None]:
    """Run forward, or forward and backward; the caller holds the results, as training would."""
    with torch.set_grad_enabled(what == "training"):
        output, weights = layer(x)
    held = [output, weights]
    if what == "training":
        held += torch.autograd.grad(output, [x, *layer.parameters()], torch.ones_like(output))
    return held


def seconds_of(run: Callable[[], object]) -> float:
    """Return the mean seconds per call, over enough calls for one measurement."""
    begun = time.perf_counter()
    calls = 0
    spent = 0.0
    while not calls or spent < AT_LEAST:
        run()
        calls += 1
        spent = time.perf_counter() - begun
    return spent / calls


def measure(job: Job, say: Callable[[str], None]) -> list[Measured]:
    """Warm up and count memory, then time all layers in rounds."""
    begun = time.perf_counter()
    torch.manual_seed(1)
    runs = []
    measured = []
    # The longest first: the allocator then holds enough memory for all others.
    for length in sorted(job.lengths, reverse=True):
        say(f"memory and warm-up · length {length}")
        for kind, what, run in _runs(job, length):
            run()
            runs.append(run)
            measured.append(Measured(kind, length, what, peak_bytes(run), []))
    warm_up = time.perf_counter() - begun
    for number in rounds(job.seconds - warm_up):
        say(f"round {number} · {time.perf_counter() - begun:.0f} of {job.seconds:g} s")
        for run, result in zip(runs, measured, strict=True):
            result.seconds.append(seconds_of(run))
    return measured


def _runs(job: Job, length: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    x = torch.randn(job.batch, length, job.width, requires_grad=True)
    for kind in job.kinds:
        layer = Layer(kind, job.width, job.reach)
        for what in PASSES:
            yield kind, what, functools.partial(call, layer, x, what)


def main() -> None:
    """Read the job, print the figures; the last line of stderr names a failure."""
    job = Job(**json.load(sys.stdin))
    try:
        measured = measure(job, lambda line: print(line, file=sys.stderr, flush=True))
    except (RuntimeError, MemoryError) as error:  # torch raises RuntimeError when out of memory
        sys.exit(" ".join(str(error).split()) or "not enough memory")
    json.dump([asdict(result) for result in measured], sys.stdout)


if __name__ == "__main__":
    main()
