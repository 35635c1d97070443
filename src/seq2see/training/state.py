"""The state of a run that checkpoints save: weights, optimizer, moving average, position."""

import math
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from seq2see.errors import InputError
from seq2see.models.weights import Tensors, copy_into, weights
from seq2see.recipe.schema import TrainConfig
from seq2see.training import checkpoint
from seq2see.training.distributed import ALONE, World
from seq2see.training.optimizer import optimizer
from seq2see.training.position import Position
from seq2see.training.sharding import placed_like, whole


class State:
    """Weights, optimizer and position of a run; of sharded weights, the part of this process."""

    def __init__(
        self, model: nn.Module, config: TrainConfig, workers: int = 1, world: World = ALONE
    ) -> None:
        self.model = model
        self.config = config
        self.world = world
        self.position = Position()
        self.optimizer = optimizer(model, config.optimizer, workers)
        self.ema: Tensors = {}
        if config.ema:
            self.ema = {name: weight.clone() for name, weight in weights(model).items()}

    def save(self, folder: Path) -> None:
        """Write a checkpoint of whole tensors, wherever the parts of them are."""
        groups = {
            "weights": weights(self.model),
            "optimizer": checkpoint.optimizer_tensors(self.model, self.optimizer),
        }
        if self.ema:
            groups["ema"] = self.ema
        entire = {
            group: {name: whole(tensor) for name, tensor in tensors.items()}
            for group, tensors in groups.items()
        }
        if self.world.main:
            saved = checkpoint.Checkpoint(entire, asdict(self.position))
            checkpoint.save(folder / self.position.name(), saved)

    def load(self, folder: Path) -> None:
        """Restore what a checkpoint saved, with any number of processes."""
        saved = checkpoint.load(folder)
        own = weights(self.model)

        def placed(tensors: Tensors) -> Tensors:
            known = (name for name in tensors if name in own)
            return tensors | {name: placed_like(own[name], tensors[name]) for name in known}

        try:
            copy_into(self.model, placed(saved.groups["weights"]), folder)
            checkpoint.copy_into_optimizer(self.model, self.optimizer, saved.groups["optimizer"])
            ema = saved.groups["ema"] if self.config.ema else {}
            self.position.adopt(saved.state)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{folder}: not a checkpoint that this version can resume: {error}"
            ) from None
        self.ema = placed(ema)
        # Checkpoints that are gone, pruned or removed by hand, can be neither chosen nor averaged.
        there = {path.name for path in checkpoint.saved_in(folder.parent)}
        scores = self.position.validations.items()
        self.position.validations = {name: score for name, score in scores if name in there}

    def shipped(self) -> Tensors:
        """Whole weights to validate: the moving average; {} for the model's own, if it has them."""
        tensors = weights(self.model) if self.sharded and not self.ema else self.ema
        return {name: whole(tensor) for name, tensor in tensors.items()}

    @property
    def sharded(self) -> bool:
        return self.world.size > 1 and self.config.shard == "full"

    def clip(self) -> float:
        """Shorten the gradient to the longest norm of the recipe; return the norm before."""
        longest = self.config.clip or math.inf
        return whole(nn.utils.clip_grad_norm_(self.model.parameters(), longest)).item()

    @torch.no_grad()
    def average_exponentially(self) -> None:
        """Move the moving average towards the weights."""
        # A long memory would hold mostly initial weights early on, so it grows with the updates.
        decay = min(self.config.ema, (1 + self.position.update) / (10 + self.position.update))
        own = weights(self.model)
        for name, average in self.ema.items():
            average.lerp_(own[name], 1 - decay)
