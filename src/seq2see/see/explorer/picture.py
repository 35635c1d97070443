"""A picture inside a classifier: its classes, and where each head attends."""

from typing import Any

from torch import Tensor

from seq2see.see.pictures import on_patches, rollout
from seq2see.tasks.picture_model import PictureModel


def picture(model: PictureModel, pixels: Tensor) -> dict[str, Any]:
    """Classify a picture (C, H, W); give the share of each patch in every head and the rollout."""
    explained = model.explain_pixels(pixels)
    rows, columns = explained.grid
    first = explained.weights[0]
    probabilities = explained.prediction.probabilities.items()
    return {
        "pixels": pixels.permute(1, 2, 0).tolist(),
        "classes": [{"label": label, "probability": share} for label, share in probabilities],
        "grid": [rows, columns],
        "class_token": first.shape[-1] > rows * columns,
        "layers": [
            {
                "name": f"stack.{number}.self",
                "heads": [_patches(head) for head in on_patches(weights, explained.grid)],
            }
            for number, weights in enumerate(explained.weights)
        ],
        "rollout": _patches(on_patches(rollout(explained.weights), explained.grid)),
    }


def _patches(shares: Tensor) -> list[list[float]]:
    patches: list[list[float]] = shares.tolist()
    return patches
