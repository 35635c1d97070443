"""Validation within its share of a budget in minutes."""

import time
from collections.abc import Callable

from torch import nn

from seq2see.models.weights import Tensors, copy_into, weights
from seq2see.training.budget import ONE_VALIDATION, Budget
from seq2see.training.report import Validation

OnShare = Callable[[nn.Module, float], Validation]  # validates on a share of the validation set

SMALLEST_PROBE = 1 / 64
PROBE_GROWTH = 4


def validate(model: nn.Module, on_share: OnShare, budget: Budget, shipped: Tensors) -> Validation:
    """Validate a model with the weights that would be shipped, or its own if none are given.

    The first validation chooses a share for the whole run: scores on different shares could not be
    compared.
    """
    if not shipped:
        return _validate(model, on_share, budget)
    own = {name: weight.clone() for name, weight in weights(model).items()}
    copy_into(model, shipped, "shipped")
    result = _validate(model, on_share, budget)
    copy_into(model, own, "own")
    return result


def _validate(model: nn.Module, on_share: OnShare, budget: Budget) -> Validation:
    at = budget.position
    model.eval()
    started = time.perf_counter()
    if not at.validation_share:
        limited = budget.config.minutes is not None and not at.validations
        limit = ONE_VALIDATION * budget.total
        at.validation_share = affordable(model, on_share, limit) if limited else 1.0
    last = time.perf_counter()
    result = on_share(model, at.validation_share)
    ended = time.perf_counter()
    budget.validation_seconds = ended - last
    at.validation_seconds += ended - started
    model.train()
    return result


def affordable(model: nn.Module, on_share: OnShare, limit: float) -> float:
    """Measure on growing shares which one takes about `limit` seconds, or less if it is all."""
    share = SMALLEST_PROBE
    while share < 1:
        started = time.perf_counter()
        share = on_share(model, share).share  # of a small set, the fewest examples are more
        expected = share * limit / max(time.perf_counter() - started, 1e-6)
        if expected < PROBE_GROWTH * share:
            return min(expected, 1.0)
        share *= PROBE_GROWTH
    return 1.0
