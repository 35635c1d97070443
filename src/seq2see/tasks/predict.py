"""Loss and predictions of a model on examples: training criterion, likelihood, best guesses."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import Batch, Examples, Ids, by_tokens, spread
from seq2see.layers.real_rows import RealRows
from seq2see.models.reduced import reduction_cost, reduction_trace
from seq2see.recipe.schema import TrainConfig
from seq2see.text.specials import PAD
from seq2see.training.loss import smoothed_loss, smoothed_loss_of
from seq2see.training.workers import share_out

VALIDATION_TOKENS = 4096
FEWEST = 32  # examples of a validation


def token_loss(model: Any, batch: Batch, config: TrainConfig) -> Tensor:
    """Smoothed loss summed over the real targets, without work on padding."""
    trace = reduction_trace(model)
    states = model.states(batch, trace, RealRows)  # (N, D)
    targets = batch.target_out[batch.target_out != PAD]  # (N,)
    smoothing = (config.label_smoothing, config.smoothing)
    loss = smoothed_loss_of(states, model.output, targets, *smoothing)
    return loss + len(targets) * reduction_cost(model, trace)


def logit_loss(model: nn.Module, batch: Any, config: TrainConfig) -> Tensor:
    """Smoothed loss of `model(batch)`, summed over the real targets."""
    trace = reduction_trace(model)
    logits = model(batch, trace)
    loss = smoothed_loss(logits, batch.targets, config.label_smoothing, config.smoothing)
    targets: int = batch.target_tokens
    return loss + targets * reduction_cost(model, trace)


@dataclass(frozen=True)
class Predictions:
    """A model's results on examples: sums over all targets, and its best guess for each."""

    loss: float
    log_probability: float
    targets: int
    right: int
    guesses: list[Ids]
    seconds: float  # that it took

    @property
    def mean_loss(self) -> float:
        return self.loss / self.targets

    @property
    def perplexity(self) -> float:
        if not math.isfinite(self.loss):
            return math.inf
        return math.exp(min(-self.log_probability / self.targets, 700))

    @property
    def accuracy(self) -> float:
        return self.right / self.targets


def validated(count: int, share: float) -> list[int]:
    """The lines of a validation set to use: a share of all, spread over the set."""
    return spread(count, max(FEWEST, round(share * count)))


def predict(
    model: nn.Module,
    examples: Examples,
    config: TrainConfig,
    device: torch.device,
    lines: Sequence[int] | None = None,
) -> Predictions:
    """Run a model under teacher forcing, in batches of similar length, by default on all lines."""
    started = time.perf_counter()
    chosen = range(len(examples.lengths)) if lines is None else lines
    batches = by_tokens(examples.lengths[chosen], VALIDATION_TOKENS, seed=0, epoch=0)

    @torch.inference_mode()
    def run(places: Sequence[int]) -> _Part:
        batch = examples.batch([chosen[place] for place in places])
        return _predict_batch(model, batch.to(device), config)

    workers = torch.get_num_threads() if device.type == "cpu" else 1
    parts = share_out(run, batches, workers)
    guesses: list[Ids] = [[] for _ in chosen]
    for places, part in zip(batches, parts, strict=True):
        for place, guess in zip(places, part.guesses, strict=True):
            guesses[place] = guess
    return Predictions(
        sum(part.loss for part in parts),
        sum(part.log_probability for part in parts),
        sum(part.targets for part in parts),
        sum(part.right for part in parts),
        guesses,
        time.perf_counter() - started,
    )


class _Part(NamedTuple):
    """The share of one batch in `Predictions`."""

    loss: float
    log_probability: float
    targets: int
    right: int
    guesses: list[Ids]


def _predict_batch(model: nn.Module, batch: Any, config: TrainConfig) -> _Part:
    trace = reduction_trace(model)
    logits: Tensor = model(batch, trace)
    target: Tensor = batch.targets
    loss = float(smoothed_loss(logits, target, config.label_smoothing, config.smoothing))
    # Without its cost, a plan that keeps every token would be chosen.
    loss += float(batch.target_tokens * reduction_cost(model, trace))
    log_probability = -float(smoothed_loss(logits, target, 0.0))
    likeliest = logits.argmax(-1)
    right = int(((likeliest == target) & (target != PAD)).sum())
    guesses: list[Ids] = likeliest.view(len(target), -1).tolist()
    return _Part(loss, log_probability, batch.target_tokens, right, guesses)
