"""Parts of every diffusion model: the prompt and the time that condition it, and its shape."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.dropout import Dropout
from seq2see.layers.masks import padding_mask
from seq2see.layers.shapes import KeysValues
from seq2see.layers.trace import Trace
from seq2see.models import parts
from seq2see.models.language import mean
from seq2see.models.parts import Memory
from seq2see.recipe.network import ModelConfig
from seq2see.text.specials import BEGIN, PAD

Shape = tuple[int, int, int]  # channels, height, width
Grid = tuple[int, int]  # rows and columns of positions that attend to each other
Linear = TypeVar("Linear", nn.Linear, nn.Conv2d)
TIMES = 1000  # time 1 is encoded like the position of this number


class PromptEncoder(nn.Module):
    """Prompt ids (B, S) → memory: an encoder trained along with the model that paints.

    A class is a prompt of one word. A prompt of padding alone, the empty one, is read as <s>, which
    no other prompt contains.
    """

    def __init__(self, config: ModelConfig, size: int) -> None:
        super().__init__()
        self.width = config.width
        self.embedding = nn.Embedding(size, config.width)
        self.positions = parts.positions_of(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = parts.encoder(config, special=None)
        self.encoder_norm = parts.last_norm(config)
        parts.initialise(self, config)

    def forward(self, ids: Tensor, trace: Trace | None = None) -> Memory:
        if ids.dim() != 2 or ids.shape[1] < 1:
            raise ValueError(f"prompts have shape {tuple(ids.shape)}; it must be (batch, length)")
        empty = (ids == PAD).all(1)
        first = torch.where(empty, BEGIN, ids[:, 0])
        ids = torch.cat([first[:, None], ids[:, 1:]], dim=1)
        x = self.embedding(ids) * self.width**0.5  # (B, S, D)
        if self.positions is not None:
            x = x + self.positions(0, x)
        memory: Memory = self.encoder(self.dropout(x), padding_mask(ids, PAD), trace)
        return replace(memory, states=self.encoder_norm(memory.states))


@dataclass(frozen=True)
class Prompted:
    """Prompts as a diffusion model attends to them, computed once for all steps."""

    pooled: Tensor  # (B, D): the mean of the states
    pairs: Mapping[str, KeysValues]  # keys and values by the name of the layer


class Place(NamedTuple):
    """A layer with attention and the grid of positions it works on."""

    layer: Any  # with self_attention, cross_attention and feed_forward
    grid: Grid


class DiffusionModel(nn.Module):
    """x_t (B, C, H, W), times (B,) and prompts → a prediction (B, C, H, W) about x_t.

    Its layers with attention are `places` by name. The self-attention of each is a module by
    itself, which another with the same signature may replace.
    """

    def __init__(self, prompts: PromptEncoder, shape: Shape, multiple: int) -> None:
        super().__init__()
        for name, size in zip(("height", "width"), shape[1:], strict=True):
            if size < 1 or size % multiple:
                raise ValueError(f"{name} ({size}) must be divisible by {multiple}")
        self.shape = shape
        self.prompts = prompts

    def places(self) -> dict[str, Place]:
        """The layers with attention by the names that their weights have in a trace."""
        raise NotImplementedError

    def read(self, prompts: Tensor, trace: Trace | None = None) -> Prompted:
        """Encode prompt ids (B, S), and project them for the cross-attention of every layer."""
        memory: Memory = self.prompts(prompts, trace)
        places = self.places()
        pairs = memory.projected([place.layer.cross_attention for place in places.values()])
        assert memory.mask is not None
        pooled = mean(memory.states, memory.mask[:, 0, 0])[:, 0]
        return Prompted(pooled, dict(zip(places, pairs, strict=True)))

    def check(self, x: Tensor, time: Tensor) -> None:
        if x.dim() != 4 or x.shape[1:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"x has shape {tuple(x.shape)}; it must be (B, {wanted})")
        if time.shape != x.shape[:1]:
            raise ValueError(f"time has shape {tuple(time.shape)}; it must be ({len(x)},)")


class Condition(nn.Module):
    """Time (B,) and pooled prompts (B, P) → the vector (B, D) that conditions every layer."""

    def __init__(self, width: int, prompt_width: int) -> None:
        super().__init__()
        self.width = width
        self.expand = nn.Linear(width, width)
        self.time = nn.Linear(width, width)
        self.prompt = nn.Linear(prompt_width, width)

    def forward(self, time: Tensor, pooled: Tensor) -> Tensor:
        hidden = functional.silu(self.expand(waves(time, self.width).to(pooled)))
        return functional.silu(self.time(hidden) + self.prompt(pooled))


def waves(time: Tensor, width: int) -> Tensor:
    """Encode times (B,) from 0 to 1 like positions from 0 to 1000, but continuously: (B, D)."""
    if width % 2:
        raise ValueError(f"width ({width}) must be even: each sine has its cosine")
    rate = 10000.0 ** (-torch.arange(0, width, 2, device=time.device) / width)
    angle = TIMES * time[:, None] * rate  # (B, D/2)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def zeroed(linear: Linear) -> Linear:
    """Set the weights to zero, so that the model starts from what it adds to."""
    for weight in linear.parameters():
        nn.init.zeros_(weight)
    return linear
