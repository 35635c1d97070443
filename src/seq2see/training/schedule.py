"""Learning-rate schedules, counted in updates."""

import math

from seq2see.recipe.schema import TrainConfig


def inverse_sqrt(update: int, peak: float, warmup: int) -> float:
    """peak · min((s/w)^-0.5, s/w), for update s and warm-up w (section 5.3).

    With peak = (d·w)^-0.5 it is the paper's d^-0.5 · min(s^-0.5, s·w^-1.5).
    """
    return peak * min(math.sqrt(warmup / update), update / warmup)


def linear(update: int, peak: float, warmup: int, progress: float, decay: float) -> float:
    """Linear warm-up, constant rate, linear decay to zero over the last `decay` of the budget."""
    decaying = (1 - progress) / decay if decay and progress > 1 - decay else 1.0
    return peak * min(update / warmup, max(decaying, 0.0))


def learning_rate(
    config: TrainConfig, width: int, update: int, progress: float, warmup: int = 0
) -> float:
    """Learning rate of an update, counted from 1, with the share `progress` of the budget spent.

    A `warmup` other than the recipe's leaves the peak as it is.
    """
    peak = config.peak(width)
    warmup = warmup or config.warmup
    if config.schedule == "inverse_sqrt":
        return inverse_sqrt(update, peak, warmup)
    return linear(update, peak, warmup, progress, config.decay)
