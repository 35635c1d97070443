"""Loss and predictions of a model on examples: training criterion, likelihood, best guesses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Batch, Examples, Ids, by_tokens
from seq2see.layers.real_rows import RealRows
from seq2see.models.reduced import reduction_cost, reduction_trace
from seq2see.recipe.schema import TrainConfig
from seq2see.text.specials import PAD
from seq2see.training.loss import smoothed_loss, smoothed_loss_of
from seq2see.training.workers import share_out

VALIDATION_TOKENS = 4096


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


def predict(
    model: nn.Module, examples: Examples, config: TrainConfig, device: torch.device
) -> Predictions:
    """Run a model under teacher forcing, in batches of similar length."""
    batches = by_tokens(examples.lengths, VALIDATION_TOKENS, seed=0, epoch=0)

    @torch.inference_mode()
    def run(lines: Sequence[int]) -> Predictions:
        return _predict_batch(model, examples.batch(lines).to(device), config)

    workers = torch.get_num_threads() if device.type == "cpu" else 1
    parts = share_out(run, batches, workers)
    guesses: list[Ids] = [[] for _ in range(len(examples.lengths))]
    for lines, part in zip(batches, parts, strict=True):
        for line, guess in zip(lines, part.guesses, strict=True):
            guesses[line] = guess
    return Predictions(
        sum(part.loss for part in parts),
        sum(part.log_probability for part in parts),
        sum(part.targets for part in parts),
        sum(part.right for part in parts),
        guesses,
    )


def _predict_batch(model: nn.Module, batch: Any, config: TrainConfig) -> Predictions:
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
    return Predictions(loss, log_probability, batch.target_tokens, right, guesses)
