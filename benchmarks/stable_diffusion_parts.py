"""Seconds by part of a diffusers U-Net: attention, feed-forward, convolutions, merging, the rest."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from diffusers import UNet2DConditionModel
from diffusers.models.attention import BasicTransformerBlock, FeedForward
from diffusers.models.downsampling import Downsample2D
from diffusers.models.resnet import ResnetBlock2D
from diffusers.models.upsampling import Upsample2D
from torch import Tensor, nn

CONVOLUTIONS = (ResnetBlock2D, Downsample2D, Upsample2D, nn.Conv2d)


class Clock:
    """Seconds by part; time spent in a part inside another one counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.parts = ["rest"]  # the innermost is the last
        self.since = 0.0

    def start(self) -> None:
        self.since = time.perf_counter()

    def enter(self, part: str) -> None:
        self._count()
        self.parts.append(part)

    def leave(self) -> None:
        self._count()
        self.parts.pop()

    def stop(self) -> dict[str, float]:
        self._count()
        return dict(self.seconds)

    def _count(self) -> None:
        now = time.perf_counter()
        self.seconds[self.parts[-1]] += now - self.since
        self.since = now


class TimedProcessor:
    """Attention processor that counts the time of another one, without merging around it."""

    def __init__(self, inner: Any, clock: Clock, part: str) -> None:
        self.inner = inner
        self.clock = clock
        self.part = part

    def __call__(
        self,
        attn: nn.Module,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        self.clock.enter(self.part)
        output: Tensor = self.inner(
            attn, hidden_states, encoder_hidden_states, attention_mask, temb
        )
        self.clock.leave()
        return output


def timed_processors(
    unet: UNet2DConditionModel, kernel: Any, clock: Clock
) -> dict[str, TimedProcessor]:
    """Wrap an attention processor for every attention of a U-Net, by name."""
    return {
        name: TimedProcessor(kernel, clock, "self" if ".attn1." in name else "cross")
        for name in unet.attn_processors
    }


def part_of(module: nn.Module) -> str | None:
    """Return the part as which a module counts, or None for that of the module around it.

    Residual blocks count as convolutions, with their norms. What a transformer block does besides
    its layers is merging and residual sums: tomesd merges in the block, seq2see inside `attn1` but
    outside of the timed processor.
    """
    if isinstance(module, BasicTransformerBlock):
        return "merging"
    if isinstance(module, FeedForward):
        return "feed_forward"
    if isinstance(module, CONVOLUTIONS):
        return "convolutions"
    return "rest" if isinstance(module, nn.LayerNorm) else None


@contextmanager
def counted(unet: UNet2DConditionModel, clock: Clock) -> Iterator[None]:
    """Count the seconds of a U-Net's modules within a with block."""
    hooks = []
    for module in unet.modules():
        if part := part_of(module):
            hooks.append(module.register_forward_pre_hook(lambda *_, part=part: clock.enter(part)))
            hooks.append(module.register_forward_hook(lambda *_: clock.leave()))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
