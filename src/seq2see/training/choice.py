"""The weights that a run ends with: of its best checkpoint, or the average of several."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from seq2see.models.weights import Tensors
from seq2see.recipe.schema import TrainConfig
from seq2see.training import checkpoint
from seq2see.training.position import Position


class Choice(NamedTuple):
    """Chosen weights, their origin in words, and their validation score."""

    weights: Tensors
    origin: str
    score: float


def choose(
    folder: Path,
    group: str,
    config: TrainConfig,
    at: Position,
    score_of: Callable[[Tensors], float],
) -> Choice:
    """Choose the best checkpoint, or the average of several if `score_of` finds that better."""
    name = at.best()
    best = Choice(checkpoint.load(folder / name).groups[group], name, at.validations[name])
    if config.average == 1 or len(at.validations) == 1:
        return best
    names = at.to_average(config)
    mean = checkpoint.average([folder / name for name in names], group)
    score = score_of(mean)
    if at.best_since is not None:  # else nothing in the average is new
        at.best_since = max(score, at.best_since)
    if score > best.score:
        return Choice(mean, f"the average of {', '.join(names)}", score)
    return best
