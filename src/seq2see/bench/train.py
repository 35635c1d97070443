"""How fast this machine trains a recipe, and how near that is to the machine's own limit."""

import itertools
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from seq2see.batches import IdPair, plan
from seq2see.errors import InputError
from seq2see.models.build import build
from seq2see.recipe.schema import ModelConfig, Recipe, TrainConfig
from seq2see.scoring.card import machine
from seq2see.tasks.text import encode, fitting
from seq2see.text import corpora, tokenizers
from seq2see.training import optimizer as optimizers
from seq2see.training.update import Gradients, workers_for

WARM_UP_UPDATES = 1
MATRIX = 2048


def bench_train(
    recipe: Recipe, data: Path | None, seconds: float, device: torch.device
) -> dict[str, Any]:
    """Train for some seconds on the recipe's own batches; count real tokens only."""
    if recipe.task != "translate":
        raise InputError(f"task = {recipe.task!r}: bench train measures translation alone")
    corpus = corpora.load(recipe.data, data)
    pair = tokenizers.train(
        recipe.tokenizer, recipe.data.source, recipe.data.target, corpus.train.pairs
    )
    encoded = encode(recipe, pair, corpus.train)
    pairs = [encoded[line] for line in fitting(encoded, recipe.data.max_length, "train")]
    config = recipe.train
    torch.manual_seed(config.seed)
    model = build(recipe, len(pair.source), len(pair.target)).to(device).train()
    optimizer = optimizers.optimizer(model, config.optimizer)
    peak = best_product(device)
    source_tokens = target_tokens = 0
    operations = spent = 0.0
    workers = workers_for(pairs, plan(pairs, config, epoch=1), config.accumulate, device)
    gradients = Gradients(model, config, workers)
    for update, batches in enumerate(_updates(pairs, config)):
        started = time.perf_counter()
        _, tokens = gradients.fill(pairs, batches, f"bench/{update}")
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip or float("inf")).item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if update < WARM_UP_UPDATES:
            continue
        spent += time.perf_counter() - started
        seen = [pairs[line] for lines in batches for line in lines]
        target_tokens += tokens
        source_tokens += sum(len(source) + 1 for source, _ in seen)
        operations += training_operations(seen, recipe.model, len(pair.target))
        if spent >= seconds:
            break
    peak = max(peak, best_product(device))
    scale = 1024 if sys.platform == "linux" else 2**20
    return {
        "target_tokens_per_second": target_tokens / spent,
        "source_tokens_per_second": source_tokens / spent,
        # Only the Transformer's operations are counted; a figure by its formula would be wrong for the other kinds.
        "utilisation": operations / spent / peak if recipe.model.kind == "transformer" else None,
        "peak_gflops": peak / 1e9,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale,
        "updates": update + 1 - WARM_UP_UPDATES,
        "seconds": spent,
        "parameters": sum(p.numel() for p in model.parameters()),
        "workers": workers,
        "machine": machine(),
    }


def _updates(pairs: Sequence[IdPair], config: TrainConfig) -> Iterator[list[list[int]]]:
    """The batches of one update after the other, epoch after epoch, as training sees them."""
    for epoch in itertools.count(1):
        batches = plan(pairs, config, epoch)
        for start in range(0, len(batches), config.accumulate):
            yield batches[start : start + config.accumulate]


def training_operations(pairs: Sequence[IdPair], model: ModelConfig, classes: int) -> float:
    """6 × matrix weights × real tokens + attention, forward and backward; nothing for padding.

    Each weight takes part in one multiplication and one addition per token forward, and twice that backward.
    The keys and values of cross-attention are made of source tokens, the rest of the decoder of target tokens.
    """
    source = torch.tensor(
        [len(source) + 1.0 for source, _ in pairs], dtype=torch.float64
    )  # </s> counts
    target = torch.tensor([len(target) + 1.0 for _, target in pairs], dtype=torch.float64)
    width, attention = model.width, model.heads * model.head_size
    block, inner = width * attention, 2 * width * model.inner
    matrices = (
        model.encoder_layers * (4 * block + inner) * source
        + model.decoder_layers * 2 * block * source
    )
    matrices = matrices + (model.decoder_layers * (6 * block + inner) + classes * width) * target
    looked_at = model.encoder_layers * source**2
    looked_at = looked_at + model.decoder_layers * (target * (target + 1) / 2 + target * source)
    return float((6 * matrices + 12 * attention * looked_at).sum())


def best_product(device: torch.device, tries: int = 8) -> float:
    """The machine's limit: operations per second of the best of several 2048³ float32 products."""
    a, b = torch.randn(MATRIX, MATRIX, device=device), torch.randn(MATRIX, MATRIX, device=device)
    best = float("inf")
    for _ in range(tries):
        started = time.perf_counter()
        (a @ b)[0, 0].item()
        best = min(best, time.perf_counter() - started)
    return float(2 * MATRIX**3 / best)
