"""Pictures from noise: a diffusion model and a sampler, step by step from time 1 to time 0."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from seq2see.decoding.hypotheses import BROKEN_MODEL
from seq2see.errors import InputError, WorkError
from seq2see.layers.trace import Trace
from seq2see.models.noise import Parts, Process, gaussian, keyed
from seq2see.text.specials import PAD


class Denoiser(Protocol):
    """A diffusion model as sampling sees it; sampling never asks which one it has."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a picture."""
        ...

    def read(self, prompts: Tensor, /) -> Any:
        """Prompt ids (B, S) → memory; a prompt of padding alone is empty."""
        ...

    def __call__(
        self, x: Tensor, time: Tensor, memory: Any, trace: Trace | None = None, /
    ) -> Tensor:
        """x_t (B, C, H, W) at times (B,) → the prediction (B, C, H, W)."""
        ...


class Move(NamedTuple):
    """One step of a sampler."""

    x: Tensor  # (B, C, H, W) at time `now`
    parts: Parts  # the picture and the noise in x, as the model predicts them
    now: Tensor  # (B,)
    later: Tensor  # (B,), nearer to 0
    draw: Callable[[], Tensor]  # fresh noise (B, C, H, W)


def ddim(process: Process, move: Move, eta: float) -> Tensor:
    """α_s x_0 + √(σ_s² − η² σ̃²) ε + η σ̃ z (Song et al., 2021, equation 12).

    σ̃² is the variance of x_s given x_t and x_0. With η = 0 nothing is drawn.
    """
    alpha, sigma = process.levels(move.now)
    later_alpha, later_sigma = process.levels(move.later)
    if eta == 0:
        return later_alpha * move.parts.picture + later_sigma * move.parts.noise
    passed = sigma**2 - (alpha / later_alpha * later_sigma) ** 2  # noise added from s to t
    drawn = eta * later_sigma / sigma * passed.clamp(min=0).sqrt()  # η σ̃
    kept = (later_sigma**2 - drawn**2).clamp(min=0).sqrt()
    x = later_alpha * move.parts.picture + kept * move.parts.noise
    return x + drawn * move.draw()


def ddpm(process: Process, move: Move, eta: float) -> Tensor:
    """Draw x_s given x_t and x_0: ancestral sampling (Ho et al., 2020, equation 7)."""
    return ddim(process, move, eta=1.0)


def euler(process: Process, move: Move, eta: float) -> Tensor:
    """x_t + (clock(s) − clock(t)) v: Euler's method for the probability-flow equation."""
    clock = process.schedule.clock
    elapsed = clock(process.levels(move.later)) - clock(process.levels(move.now))
    return move.x + elapsed * process.velocity(move.parts, move.now)


SAMPLERS = {"ddim": ddim, "ddpm": ddpm, "euler": euler}


@dataclass(frozen=True)
class Denoising:
    """Settings for drawing pictures."""

    sampler: str = "ddim"
    steps: int = 30
    guidance: float = 3.0  # 0: the prompt is ignored; 1: the model as it is; above: exaggerated
    eta: float = 0.0  # ddim: noise that each step adds, from 0 to ddpm's 1
    clip: float | None = 1.0  # predicted pictures stay between −clip and clip; None: anywhere
    quantile: float = 1.0  # below 1: of each picture, scaled down to clip if it is above
    shift: float = 1.0  # above 1: more of the steps at high noise

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise InputError(f"sampler {self.sampler!r} is not one of {', '.join(SAMPLERS)}")
        if self.steps < 1:
            raise InputError(f"steps ({self.steps}) must be at least 1")
        if not 0 <= self.guidance < math.inf:
            raise InputError(f"guidance ({self.guidance}) must be a number of at least 0")
        if not 0 <= self.eta <= 1:
            raise InputError(f"eta ({self.eta}) must be between 0 and 1")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"clip ({self.clip}) must be above 0")
        if not 0 < self.quantile <= 1:
            raise InputError(f"quantile ({self.quantile}) must be above 0 and at most 1")
        if not 0 < self.shift < math.inf:
            raise InputError(f"shift ({self.shift}) must be a number above 0")

    def times(self, latest: float) -> list[float]:
        """Times of the steps from the latest to 0: even ones t, moved to s·t / (1 + (s − 1)·t).

        A shift s above 1 takes more of the steps at high noise (Esser et al., 2024).
        """
        even = torch.linspace(1, 0, self.steps + 1, dtype=torch.float64)
        moved = self.shift * even / (1 + (self.shift - 1) * even)
        return [latest * time for time in moved.tolist()]


class Step(NamedTuple):
    """The state after a step, for progress, pictures of it, and attention."""

    number: int  # from 1
    steps: int
    time: float  # of x
    x: Tensor  # (B, C, H, W)
    picture: Tensor  # (B, C, H, W): the picture that the model predicted in this step
    trace: Trace | None  # attention of the step, with the prompts


@torch.inference_mode()
def denoise(
    model: Denoiser,
    process: Process,
    prompts: Tensor,
    seeds: Sequence[int],
    settings: Denoising,
    *,
    watch: Callable[[Step], None] | None = None,
    traced: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Draw a picture (C, H, W) for each prompt of ids (B, S), from its own seed: (B, C, H, W).

    `watch` is called after each step, with the attention weights if `traced`.
    """
    if len(seeds) != len(prompts):
        raise InputError(f"{len(seeds)} seeds are given for {len(prompts)} prompts")
    generators = [keyed(f"denoise/{seed}") for seed in seeds]

    def draw() -> Tensor:
        return gaussian(generators, model.shape).to(prompts.device, dtype)

    predict = _Guided(model, prompts, settings.guidance)
    step = SAMPLERS[settings.sampler]
    x = draw()
    for number, pair in enumerate(pairwise(settings.times(process.latest)), start=1):
        now, later = (x.new_full((len(x),), time) for time in pair)
        trace = Trace() if traced else None
        parts = process.parts(x, predict(x, now, trace), now)
        if settings.clip is not None:
            picture = clipped(parts.picture, settings.clip, settings.quantile)
            parts = process.parts_of(x, picture, now)
        x = step(process, Move(x, parts, now, later, draw), settings.eta)
        if not x.isfinite().all():
            raise WorkError(BROKEN_MODEL)
        if watch is not None:
            watch(Step(number, settings.steps, pair[1], x, parts.picture, trace))
    return x


class _Guided:
    """Predictions with classifier-free guidance (Ho and Salimans, 2022).

    p(∅) + g (p(prompt) − p(∅)), in one pass over both; at g = 0 and 1 only one is computed.
    """

    def __init__(self, model: Denoiser, prompts: Tensor, guidance: float) -> None:
        self.model = model
        self.guidance = guidance
        self.both = guidance not in (0, 1)
        if guidance != 1:
            empty = torch.full_like(prompts, PAD)
            prompts = torch.cat([prompts, empty]) if self.both else empty
        self.memory = model.read(prompts)

    def __call__(self, x: Tensor, time: Tensor, trace: Trace | None) -> Tensor:
        if not self.both:
            return self.model(x, time, self.memory, trace)
        twice = x.repeat(2, 1, 1, 1), time.repeat(2)
        prompted, plain = self.model(*twice, self.memory, trace).chunk(2)
        if trace is not None:
            for by_layer in (trace.weights, trace.merged):
                by_layer.update({name: kept[: len(x)] for name, kept in by_layer.items()})
        return plain + self.guidance * (prompted - plain)


def clipped(picture: Tensor, clip: float, quantile: float = 1.0) -> Tensor:
    """Limit predicted pictures (B, C, H, W) to −clip … clip.

    With a quantile below 1, a picture is limited to that quantile of its magnitudes, and if this is
    above `clip`, scaled down to it: dynamic thresholding (Saharia et al., 2022).
    """
    if quantile == 1:
        return picture.clamp(-clip, clip)
    limit = torch.quantile(picture.abs().flatten(1), quantile, dim=1).clamp(min=clip)  # (B,)
    limit = limit[:, None, None, None]
    return picture.clamp(-limit, limit) * (clip / limit)
