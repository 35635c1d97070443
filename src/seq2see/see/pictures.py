"""Attention of an image model over its picture: every head, and the rollout of all layers."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from seq2see.see.figures import layer_and_head
from seq2see.tasks.picture_model import PictureExplanation

HEAT = "inferno"
DIMMED = 0.35  # brightness of the picture under a heat map


def rollout(weights: Sequence[Tensor]) -> Tensor:
    """Â_L · … · Â_1 with Â = (mean over heads of A + I) / 2: attention rollout over the input.

    After Abnar and Zuidema (2020); I stands for the residual connection. Each layer's weights are
    (H, P, P), first layer first. Rows of the result (P, P) sum to one, or to 0 for pruned tokens.
    """
    first = weights[0]
    rolled = torch.eye(first.shape[-1], dtype=first.dtype, device=first.device)
    for layer in weights:
        mean = layer.mean(0)
        rolled = (mean @ rolled + _kept(mean) * rolled) / 2
    return rolled


def on_patches(weights: Tensor, grid: tuple[int, int]) -> Tensor:
    """Reduce weights (..., P, P) to the share of each patch in the prediction (..., rows, columns).

    The prediction reads the class token or, without one, the mean of the patches that were kept.
    """
    if weights.shape[-1] > grid[0] * grid[1]:
        return torch.unflatten(weights[..., 0, 1:], -1, grid)
    return torch.unflatten(weights.sum(-2) / _kept(weights).sum(-2).clamp(min=1), -1, grid)


def _kept(weights: Tensor) -> Tensor:
    """Give 1 for each token that attends to anything and 0 for each pruned one, (..., P, 1)."""
    return (weights.sum(-1, keepdim=True) > 0).to(weights)


def draw(explanation: PictureExplanation) -> Figure:
    """Draw the picture and the rollout, then every head, each scaled to its own maximum."""
    layers = len(explanation.weights)
    heads, tokens, _ = explanation.weights[0].shape
    columns = max(heads, 2)
    figure = Figure(figsize=(1.3 * columns + 0.4, 1.55 * (layers + 1) + 0.5), layout="constrained")
    label, probability = next(iter(explanation.prediction.probabilities.items()))
    has_class_token = tokens > explanation.grid[0] * explanation.grid[1]
    queries = "attention of the class token" if has_class_token else "mean attention of all patches"
    figure.suptitle(f"{label} ({probability:.1%})\n{queries}", fontsize=10, parse_math=False)
    panels: Any = figure.subplots(layers + 1, columns, squeeze=False)
    for axes in panels.flat:
        axes.set_axis_off()
    _panel(panels[0][0], explanation.pixels, None, "input")
    _panel(
        panels[0][1],
        explanation.pixels,
        on_patches(rollout(explanation.weights), explanation.grid),
        "rollout",
    )
    for i, weights in enumerate(explanation.weights):
        for j, shares in enumerate(on_patches(weights, explanation.grid)):
            _panel(panels[i + 1][j], explanation.pixels, shares, layer_and_head(i, j))
    return figure


def _panel(axes: Axes, pixels: Tensor, shares: Tensor | None, title: str) -> None:
    overlay(axes, pixels, shares)
    if shares is not None:
        title += f"\nat most {float(shares.max()):.0%} per patch"
    axes.set_title(title, fontsize=6, pad=2)


def overlay(
    axes: Axes, pixels: Tensor, shares: Tensor | None = None, most: float | None = None
) -> None:
    """Draw a picture (C, H, W); with shares (rows, columns), dimmed under their heat map.

    The brightest colour of the heat map stands for `most`, by default the largest of the shares.
    """
    height, width = pixels.shape[1:]
    options: Any = {"extent": (0, width, height, 0), "interpolation": "nearest"}
    image = pixels.permute(1, 2, 0).expand(-1, -1, 3).float() / 255  # (H, W, 3)
    if shares is None:
        axes.imshow(image.numpy(), **options)
        return
    axes.imshow((DIMMED * image).numpy(), **options)
    top = float(shares.max()) if most is None else most
    # All shares are 0 where every patch was pruned.
    opacity = 0.75 * shares / max(top, torch.finfo(shares.dtype).tiny)
    axes.imshow(shares.numpy(), cmap=HEAT, vmin=0.0, vmax=top, alpha=opacity.numpy(), **options)
