"""Training throughput of a recipe on this machine, and its share of the machine's matrix peak."""

import itertools
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from seq2see.batches import Lengths, TextExamples, epoch_batches
from seq2see.bench.memory import peak_resident_mb
from seq2see.errors import InputError
from seq2see.models.build import pass_tokens
from seq2see.recipe.schema import ModelConfig, Recipe, TrainConfig
from seq2see.scoring.card import machine
from seq2see.tasks.table import task_of
from seq2see.tasks.text import TextData
from seq2see.tasks.translate import Translate
from seq2see.text.history import History
from seq2see.training import optimizer as optimizers
from seq2see.training.machine import product_type
from seq2see.training.passes import usual_passes
from seq2see.training.update import Gradients, workers_for
from seq2see.training.workers import one_thread

WARM_UP_UPDATES = 1
MATRIX = 2048


@dataclass
class Tally:
    """Totals over the measured updates; real tokens only."""

    updates: int = 0
    seconds: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    operations: float = 0.0


def bench_train(
    recipe: Recipe, data: Path | None, seconds: float, device: torch.device
) -> dict[str, Any]:
    """Train on the recipe's own batches until `seconds` of updates have been measured."""
    task = task_of(recipe)
    if not isinstance(task, Translate):
        raise InputError(f"task = {recipe.task!r}: bench train measures translation alone")
    corpus = task.data(data, History())
    with tempfile.TemporaryDirectory() as folder:
        corpus.prepare(Path(folder), None)
    config = recipe.train
    torch.manual_seed(config.seed)
    model = task.build(corpus).to(device).train()
    optimizer = optimizers.optimizer(model, config.optimizer)
    lengths = corpus.train(1).lengths
    longest = pass_tokens(model)
    first_epoch = epoch_batches(lengths, config, 1)
    passes = usual_passes(lengths, first_epoch, config.accumulate, device, longest)
    workers = workers_for(passes, device)
    dtype = product_type(config.precision, device)
    gradients = Gradients(model, task.loss, workers, longest, dtype)
    tally = Tally()
    classes = len(corpus.tokenizers.target)
    for update, (examples, batches) in enumerate(_updates(corpus, config)):
        started = time.perf_counter()
        _, tokens = gradients.fill(examples, batches, f"bench/{update}")
        nn.utils.clip_grad_norm_(model.parameters(), config.clip or float("inf")).item()
        with one_thread():
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if update < WARM_UP_UPDATES:
            continue
        tally.updates += 1
        tally.seconds += time.perf_counter() - started
        trained = examples.lengths[[line for lines in batches for line in lines]]
        tally.target_tokens += tokens
        tally.source_tokens += int(trained[:, 0].sum())
        tally.operations += training_operations(trained, recipe.model, classes)
        if tally.seconds >= seconds:
            break
    memory = peak_resident_mb()  # before the matrix product, which would add its own
    result = _result(recipe, model, tally, best_product(device))
    return result | {"peak_memory_mb": memory, "workers": workers, "machine": machine()}


def _result(recipe: Recipe, model: nn.Module, tally: Tally, peak: float) -> dict[str, Any]:
    utilisation = None
    if recipe.model.kind == "transformer":  # `training_operations` holds for no other kind
        utilisation = tally.operations / tally.seconds / peak
    return {
        "target_tokens_per_second": tally.target_tokens / tally.seconds,
        "source_tokens_per_second": tally.source_tokens / tally.seconds,
        "utilisation": utilisation,
        "peak_gflops": peak / 1e9,
        "updates": tally.updates,
        "seconds": tally.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _updates(data: TextData, config: TrainConfig) -> Iterator[tuple[TextExamples, list[list[int]]]]:
    """Yield the batches of each update, epoch after epoch, in the order of training."""
    for epoch in itertools.count(1):
        examples = data.train(epoch)
        batches = epoch_batches(examples.lengths, config, epoch)
        for start in range(0, len(batches), config.accumulate):
            yield examples, batches[start : start + config.accumulate]


def training_operations(lengths: Lengths, model: ModelConfig, classes: int) -> float:
    """Count 6 × matrix weights × real tokens + attention, forward and backward, without padding.

    Per token, each weight takes one multiplication and one addition forward and twice that
    backward. Keys and values of cross-attention are projected from source tokens; everything else
    in the decoder acts on target tokens.
    """
    source, target = lengths.astype(np.float64).T  # with </s>
    attention = model.heads * model.head_size
    projection = model.width * attention
    feed_forward = 2 * model.width * model.inner
    encoder = model.encoder_layers * (4 * projection + feed_forward)
    cross_keys_and_values = model.decoder_layers * 2 * projection
    decoder = model.decoder_layers * (6 * projection + feed_forward)
    matrices = encoder * source + cross_keys_and_values * source
    matrices = matrices + (decoder + classes * model.width) * target
    causal = target * (target + 1) / 2
    scores = model.encoder_layers * source**2
    scores = scores + model.decoder_layers * (causal + target * source)
    return float((6 * matrices + 12 * attention * scores).sum())


def best_product(device: torch.device, tries: int = 16) -> float:
    """Return the matrix peak: operations per second of the fastest 2048³ product in float32."""
    a = torch.randn(MATRIX, MATRIX, device=device)
    b = torch.randn(MATRIX, MATRIX, device=device)
    best = float("inf")
    for _ in range(tries):
        started = time.perf_counter()
        (a @ b)[0, 0].item()
        best = min(best, time.perf_counter() - started)
    return float(2 * MATRIX**3 / best)
