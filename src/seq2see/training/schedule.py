"""Learning-rate schedules, counted in updates."""

import math

from seq2see.recipe.schema import TrainConfig


def inverse_sqrt(update: int, peak: float, warmup: int) -> float:
    """peak · min((s/w)^-0.5, s/w); with peak = (d·w)^-0.5 it is d^-0.5 · min(s^-0.5, s·w^-1.5) (section 5.3)."""
    return peak * min(math.sqrt(warmup / update), update / warmup)


def linear(update: int, peak: float, warmup: int, progress: float, decay: float) -> float:
    """Warm up, stay, and fall in a straight line to zero over the last `decay` of the budget."""
    falling = (1 - progress) / decay if decay and progress > 1 - decay else 1.0
    return peak * min(update / warmup, max(falling, 0.0))


def learning_rate(config: TrainConfig, width: int, update: int, progress: float) -> float:
    """The rate of an update (counted from 1) when the share `progress` of the budget is spent."""
    peak = config.peak(width)
    if config.schedule == "inverse_sqrt":
        return inverse_sqrt(update, peak, config.warmup)
    return linear(update, peak, config.warmup, progress, config.decay)
