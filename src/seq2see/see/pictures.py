"""Where a model of pictures looks: every head, and all layers together, drawn over the picture."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from seq2see.tasks.picture_model import Sight

HEAT = "inferno"
DIMMED = 0.35  # how much of the picture is left where nothing is looked at


def rollout(weights: Sequence[Tensor]) -> Tensor:
    """Â_L · … · Â_1, where Â is half the mean of a layer's heads and half I: how much of each token came where.

    Attention rollout (Abnar and Zuidema, 2020); the half that is I is the residual. Weights of each layer are
    (H, P, P), first layer first; the result (P, P) has rows that sum to one, as theirs do, and 0 for what was pruned.
    """
    flowed = torch.eye(weights[0].shape[-1], dtype=weights[0].dtype, device=weights[0].device)
    for layer in weights:
        mean = layer.mean(0)
        flowed = (mean @ flowed + _left(mean) * flowed) / 2
    return flowed


def on_patches(weights: Tensor, grid: tuple[int, int]) -> Tensor:
    """Who looks where (..., P, P) → what the answer is made of (..., rows, columns), patch by patch.

    The answer is the class token's state, or without one the mean of all patches' that were not pruned.
    """
    if weights.shape[-1] > grid[0] * grid[1]:
        return torch.unflatten(weights[..., 0, 1:], -1, grid)
    return torch.unflatten(weights.sum(-2) / _left(weights).sum(-2).clamp(min=1), -1, grid)


def _left(weights: Tensor) -> Tensor:
    """Which of the tokens (..., P, 1) still look at something (..., P, P): 1, and 0 for those that were pruned."""
    return (weights.sum(-1, keepdim=True) > 0).to(weights)


def draw(sight: Sight) -> Figure:
    """The picture and the rollout, then every head of every layer, each brightest where it looks most."""
    layers, heads = len(sight.weights), sight.weights[0].shape[0]
    columns = max(heads, 2)
    figure = Figure(figsize=(1.3 * columns + 0.4, 1.55 * (layers + 1) + 0.5), layout="constrained")
    label, probability = next(iter(sight.found.probabilities.items()))
    class_token = sight.weights[0].shape[-1] > sight.grid[0] * sight.grid[1]
    figure.suptitle(
        f"{label} ({probability:.1%}): where {'the class token looks' if class_token else 'all patches look'}",
        fontsize=10,
        parse_math=False,
    )
    axes: Any = figure.subplots(layers + 1, columns, squeeze=False)
    for each in axes.flat:
        each.set_axis_off()
    _panel(axes[0][0], sight.pixels, None, "the picture")
    _panel(axes[0][1], sight.pixels, on_patches(rollout(sight.weights), sight.grid), "rollout")
    for i, weights in enumerate(sight.weights):
        for j, seen in enumerate(on_patches(weights, sight.grid)):
            _panel(axes[i + 1][j], sight.pixels, seen, f"layer {i + 1} · head {j + 1}")
    return figure


def _panel(axes: Axes, pixels: Tensor, seen: Tensor | None, title: str) -> None:
    """A picture (C, H, W) in its own colours, or dimmed and with heat over the patches, by the share each gets."""
    height, width = pixels.shape[1:]
    place: Any = {"extent": (0, width, height, 0), "interpolation": "nearest"}
    shown = pixels.permute(1, 2, 0).expand(-1, -1, 3).float() / 255  # (H, W, 3)
    if seen is None:
        axes.imshow(shown.numpy(), **place)
    else:
        axes.imshow((DIMMED * shown).numpy(), **place)
        share = seen / seen.max().clamp(
            min=torch.finfo(seen.dtype).tiny
        )  # all are 0 where no patch is left
        axes.imshow(seen.numpy(), cmap=HEAT, vmin=0.0, alpha=(0.75 * share).numpy(), **place)
        title += f"\nat most {float(seen.max()):.0%} on a patch"
    axes.set_title(title, fontsize=6, pad=2)
