"""Speed of the paper's models on one core: `python benchmarks/distributed.py large`.

Nobody trains them here. From the time that a core takes for a token and for an optimizer step, and
from the bytes of a gradient, `tables/distributed.py` computes what many processes would take.
"""

import random
import statistics
import time
from typing import Any

import torch
from distributed_jobs import say

from seq2see.batches import TextExamples
from seq2see.models.build import pass_tokens
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import task_of
from seq2see.text.specials import SPECIALS
from seq2see.training.optimizer import optimizer
from seq2see.training.update import Gradients

RECIPES = ("wmt14-base", "wmt14-big")
LENGTHS = (15, 45)  # pieces of a sentence
TOKENS = 900  # target tokens of an update


def sentences(pieces: int) -> TextExamples:
    """Make sentences of random pieces; time does not depend on which."""
    draw = random.Random("large")

    def sentence() -> list[int]:
        return draw.choices(range(len(SPECIALS), pieces), k=draw.randint(*LENGTHS))

    pairs = []
    while sum(len(target) + 1 for _, target in pairs) < TOKENS:
        pairs.append((sentence(), sentence()))
    return TextExamples(pairs)


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Time the gradient of an update and the optimizer step of one model, after a warm-up."""
    recipe = Recipe.load(name)
    pieces = recipe.tokenizer.size
    assert pieces is not None
    model = Transformer(recipe.model, pieces, pieces, recipe.model.tie).train()
    examples = sentences(pieces)
    gradients = Gradients(model, task_of(recipe).loss, 1, pass_tokens(model))
    step = optimizer(model, recipe.train.optimizer)
    gradient_seconds = []
    step_seconds = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        targets = gradients.fill(examples, [list(range(len(examples)))], f"large/{number}").targets
        filled = time.perf_counter()
        step.step()
        step_seconds.append(time.perf_counter() - filled)
        gradient_seconds.append((filled - started) / targets)
        step.zero_grad(set_to_none=True)
        say(f"{name}: {targets} target tokens in {filled - started:.1f} s")
    return {
        "recipe": name,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds_per_target_token": statistics.median(gradient_seconds[1:]),
        "seconds_per_step": statistics.median(step_seconds[1:]),
    }


def large(rounds: int) -> dict[str, Any]:
    """Measure both models on one thread."""
    torch.set_num_threads(1)
    return {"rounds": rounds, "rows": [measure(name, rounds) for name in RECIPES]}
