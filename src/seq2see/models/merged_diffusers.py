"""Token merging in the U-Nets of diffusers, such as Stable Diffusion's, by attention processors.

Shapes: B batch, N positions, P places that are left, D width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from seq2see.errors import InputError
from seq2see.layers.attention import Maybe
from seq2see.layers.reduction.merging import size_bias
from seq2see.models.diffusion import Grid
from seq2see.models.merged import check, match

SELF_ATTENTION = "attn1"  # its name in the transformer blocks of diffusers


def merge_in(
    pipeline: Any,
    ratio: float = 0.5,
    *,
    method: str = "all",
    max_downsample: int = 1,
    proportional: bool = False,
    seed: int = 1,
) -> None:
    """Merge similar positions in the self-attention of a diffusers pipeline or U-Net, in place.

    `ratio`, from 0 to 0.75, is the share of positions merged into others; 0 restores the model as
    it was, and another call replaces the settings. With method "all" merged positions attend and
    are copied to those they stand for; with "keys" only keys and values are merged. Layers merge
    whose grid is at most `max_downsample` (1, 2, 4 …) times as coarse as the latent picture.
    `proportional` counts a merged key as often as positions it stands for. It is off by default,
    as in tomesd: it adds a mask, which not every fused kernel takes. Destinations are drawn by
    the seed, the layer and the timestep, so that a run can be repeated.
    """
    check(ratio, method)
    if max_downsample < 1:
        raise InputError(f"max_downsample ({max_downsample}) must be at least 1")
    unet = getattr(pipeline, "unet", pipeline)
    layers = _self_attention(unet)
    if not layers:
        kind = type(pipeline).__name__
        raise InputError(f"{kind} has no U-Net of diffusers with self-attention to merge in")
    _restore(layers)
    if ratio == 0:
        return
    settings = Settings(ratio, method, max_downsample, proportional, seed)
    step = Step(unet)
    for name, layer in layers.items():
        layer.set_processor(MergingProcessor(layer.processor, name, step, settings))


@dataclass(frozen=True)
class Settings:
    """The settings of `merge_in`."""

    ratio: float
    method: str
    max_downsample: int
    proportional: bool
    seed: int


class Step:
    """Size of the latent picture and timestep, noted whenever the U-Net is called."""

    def __init__(self, unet: nn.Module) -> None:
        self.size: Grid = (0, 0)
        self.time = 0.0
        self.hook: RemovableHandle = unet.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, unet: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = dict(zip(("sample", "timestep"), inputs, strict=False)) | named
        height, width = given["sample"].shape[-2:]
        self.size = (height, width)
        self.time = float(torch.as_tensor(given["timestep"]).flatten()[0])

    def grid(self, length: int, max_downsample: int) -> Grid | None:
        """Return the grid of a layer with `length` positions, unless it is too coarse to merge.

        Each level halves height and width, rounding up.
        """
        height, width = self.size
        factor = 1
        while height * width > length and factor < max_downsample:
            height, width = (height + 1) // 2, (width + 1) // 2
            factor *= 2
        return (height, width) if height * width == length else None


class MergingProcessor:
    """Attention processor that merges the positions around another one, which attends as before."""

    def __init__(self, inner: Any, name: str, step: Step, settings: Settings) -> None:
        self.inner = inner
        self.name = name
        self.step = step
        self.settings = settings

    def __call__(
        self,
        attn: nn.Module,
        hidden_states: Tensor,
        encoder_hidden_states: Maybe = None,
        attention_mask: Maybe = None,
        temb: Maybe = None,
    ) -> Tensor:
        """hidden_states (B, N, D) → (B, N, D); masked or cross-attention is left alone."""
        shape = None
        if encoder_hidden_states is None and attention_mask is None and hidden_states.dim() == 3:
            shape = self.step.grid(hidden_states.shape[1], self.settings.max_downsample)
        if shape is None:
            output: Tensor = self.inner(
                attn, hidden_states, encoder_hidden_states, attention_mask, temb
            )
            return output
        key = f"merge/{self.settings.seed}/{self.name}/{self.step.time}"
        reduction = match(hidden_states, shape, self.settings.ratio, key)
        merged = reduction.merge(hidden_states)  # (B, P, D)
        bias = size_bias(reduction.sizes)[:, 0] if self.settings.proportional else None  # (B, 1, P)
        if self.settings.method == "keys":
            output = self.inner(attn, hidden_states, merged, bias, temb)
            return output
        return reduction.unmerge(self.inner(attn, merged, None, bias, temb))


def _self_attention(unet: Any) -> dict[str, Any]:
    """The self-attention of every transformer block, by name."""
    if not isinstance(unet, nn.Module):
        return {}
    return {
        name: module
        for name, module in unet.named_modules()
        if name.endswith(SELF_ATTENTION) and hasattr(module, "set_processor")
    }


def _restore(layers: dict[str, Any]) -> None:
    """Give layers that merge their former processors back."""
    for layer in layers.values():
        if isinstance(layer.processor, MergingProcessor):
            layer.processor.step.hook.remove()
            layer.set_processor(layer.processor.inner)
