"""The training benchmark: counted operations, and the keys of its JSON."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from seq2see.batches import TextExamples
from seq2see.bench.train import bench_train, training_operations
from seq2see.layers.trace import Trace
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, Recipe


def test_operations_are_those_of_the_matrices_counted_by_torch() -> None:
    """Without padding, torch's own counter must agree, except for the causal half."""
    sizes = {
        "width": 24,
        "heads": 3,
        "attention_width": 36,
        "encoder_layers": 2,
        "decoder_layers": 3,
    }
    config = ModelConfig.model_validate(sizes | {"feed_forward": 40, "dropout": 0.0})
    source, target, sentences, classes = 6, 8, 5, 31
    pairs = [([4] * (source - 1), [5] * (target - 1)) for _ in range(sentences)]
    examples = TextExamples(pairs)
    batch = examples.batch(range(sentences))
    model = Transformer(config, 29, classes).train()
    with FlopCounterMode(display=False) as counter:
        model(batch, Trace())  # the open path, whose products the counter knows
    forward = counter.get_total_flops()
    # The counter takes the whole square of causal self-attention; we take the visible half.
    masked = 4 * 36 * config.decoder_layers * sentences * (target**2 - target * (target + 1) / 2)
    operations = training_operations(examples.lengths, config, classes)
    assert operations / 3 == pytest.approx(forward - masked)


def test_bench_train_returns_the_documented_keys(toy: Any) -> None:
    recipe: Recipe = toy.recipe("train.accumulate=2")
    figures = bench_train(recipe, None, seconds=0.2, device=torch.device("cpu"))
    assert figures["target_tokens_per_second"] > 0 and figures["peak_memory_mb"] > 50
    assert 0 < figures["utilisation"] < 1
    assert figures["updates"] >= 1
