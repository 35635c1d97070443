"""Time by part of a diffusion model: attention, feed-forward and convolutions, timed by hooks."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.hooks import RemovableHandle

from seq2see.bench.paint_workload import Setting, Workload
from seq2see.decoding.denoising import denoise
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import DiffusionModel
from seq2see.models.merged import MergedDiffusion, Run
from seq2see.tasks.painter import TOGETHER
from seq2see.training.workers import one_thread

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
PARTS = (*SUBLAYERS, "convolutions", "rest")
STEPS = 6  # that are timed, at least


@dataclass(frozen=True, kw_only=True)
class TimeByPart(Setting):
    """Processor time of one step of sampling, on one thread, and the share of each part.

    Self-attention includes its projections and, with merging, matching, merging and unmerging. The
    rest is norms, residuals, time and prompt, and the sampler.
    """

    fused: bool  # whether attention uses the fused kernel
    seconds_per_step: float  # of one picture
    shares: dict[str, float]  # by the names in PARTS

    @property
    def attention(self) -> float:
        """Share of self-attention and cross-attention."""
        return self.shares["self_attention"] + self.shares["cross_attention"]


class Stopwatch:
    """A denoiser that runs another and adds up the processor time of its parts, in this thread.

    Unlike wall-clock time, it stands still while another process has the core. The prompts are read
    before it starts: once for all steps, they would weigh too much in a few.
    """

    def __init__(self, model: DiffusionModel | MergedDiffusion) -> None:
        self.model = model
        self.shape = model.shape
        self.seconds = dict.fromkeys(PARTS[:-1], 0.0)
        self.started = 0.0
        self._hooks: list[RemovableHandle] = []

    def read(self, prompts: Tensor) -> Any:
        memory: Any = self.model.read(prompts)
        network: Any = memory.model if isinstance(memory, Run) else self.model
        for part, module in _modules(network):
            self._watch(part, module)
        self.started = time.thread_time()
        return memory

    def __call__(self, x: Tensor, at: Tensor, memory: Any, trace: Trace | None = None) -> Tensor:
        prediction: Tensor = self.model(x, at, memory, trace)
        return prediction

    def stop(self) -> dict[str, float]:
        """Return the seconds of each part, the rest included."""
        total = time.thread_time() - self.started
        for hook in self._hooks:
            hook.remove()
        return self.seconds | {"rest": total - sum(self.seconds.values())}

    def _watch(self, part: str, module: nn.Module) -> None:
        began = 0.0

        def start(*_: Any) -> None:
            nonlocal began
            began = time.thread_time()

        def end(*_: Any) -> None:
            self.seconds[part] += time.thread_time() - began

        self._hooks.append(module.register_forward_pre_hook(start))
        self._hooks.append(module.register_forward_hook(end))


def _modules(network: Any) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules of each part, none inside another."""
    for place in network.places().values():
        for part in SUBLAYERS:
            yield part, getattr(place.layer, part)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            yield "convolutions", module


def time_by_part(workload: Workload, setting: Setting, fused: bool = True) -> TimeByPart:
    """Time the parts of a setting over a few steps of one batch, after one step to warm up."""
    painter = workload.painter(setting)
    ids = painter.ids(workload.prompts[:TOGETHER])
    seeds = workload.seeds[:TOGETHER]
    # Whole periods of reused matchings: a matching costs as much as in a whole picture.
    steps = setting.every * -(-STEPS // setting.every)
    kernel: AbstractContextManager[None] = nullcontext() if fused else sdpa_kernel(SDPBackend.MATH)
    with one_thread(), kernel:
        for count in (1, steps):
            stopwatch = Stopwatch(painter.model)
            sampling = replace(workload.sampling, steps=count)
            denoise(stopwatch, painter.process, ids, seeds, sampling)
            seconds = stopwatch.stop()
    total = sum(seconds.values())
    return TimeByPart(
        **asdict(setting),
        fused=fused,
        seconds_per_step=total / steps / len(ids),
        shares={part: spent / total for part, spent in seconds.items()},
    )
