"""Losses of all text models without work on padding, and predictions on examples."""

import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import IdPair, TextExamples
from seq2see.models.build import KINDS
from seq2see.models.language import CausalModel, Classifier, MaskedModel
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.tasks.masked import hide
from seq2see.tasks.predict import logit_loss, predict, token_loss
from seq2see.text.specials import PAD

SIZE = 17
UNEVEN: list[IdPair] = [([4, 5, 6], [7, 8]), ([9], [4, 5, 6, 7, 8]), ([5, 5, 4, 8, 9, 6], [11])]
EVEN: list[IdPair] = [([4, 5], [7, 8, 9]), ([9, 6], [4, 5, 6])]
CPU = torch.device("cpu")
CONFIG = TrainConfig(steps=1, label_smoothing=0.2)
BLOCKS: list[dict[str, Any]] = [
    {},
    {"norm": "post", "positions": "learned", "max_positions": 9},
    {"positions": "rotary", "attention_bias": False},
    {"positions": "none", "score": "additive", "attention_width": 12},
]
NETWORKS: list[dict[str, Any]] = [
    *BLOCKS,
    {"kind": "lstm"},
    {"kind": "gru", "attend": False},
    {"kind": "conv", "kernel": 3},
    {"kind": "prefix"},
]


def config_of(keys: dict[str, Any]) -> ModelConfig:
    layers = {} if keys.get("kind") == "prefix" else {"decoder_layers": 3}
    blocks = {} if keys.get("kind") not in (None, "prefix") else {"heads": 2}
    return ModelConfig.model_validate({"width": 8, "encoder_layers": 2, **layers, **blocks, **keys})


def one_stack(keys: dict[str, Any]) -> ModelConfig:
    return ModelConfig.model_validate({"width": 8, "heads": 2, "encoder_layers": 2, **keys})


def losses_and_gradients(
    model: nn.Module, examples: TextExamples
) -> tuple[list[Tensor], list[tuple[Tensor, ...]]]:
    model.double().eval()
    batch = examples.batch(range(len(examples)))
    losses = [loss(model, batch, CONFIG) for loss in (token_loss, logit_loss)]
    weights = list(model.parameters())
    gradients = [torch.autograd.grad(loss, weights, allow_unused=True) for loss in losses]
    return losses, gradients


def assert_equal_losses(model: nn.Module, examples: TextExamples) -> None:
    losses, gradients = losses_and_gradients(model, examples)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(*gradients, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("keys", NETWORKS, ids=str)
@pytest.mark.parametrize("pairs", [UNEVEN, EVEN], ids=["uneven", "even"])
def test_the_loss_of_a_translation_model_is_that_of_its_padded_logits(
    keys: dict[str, Any], pairs: list[IdPair]
) -> None:
    torch.manual_seed(5)
    config = config_of(keys)
    model = KINDS[config.kind](config, SIZE, SIZE, "none")
    assert_equal_losses(model, TextExamples(pairs))


@pytest.mark.parametrize("keys", BLOCKS, ids=str)
def test_the_loss_of_a_language_model_is_that_of_its_padded_logits(keys: dict[str, Any]) -> None:
    torch.manual_seed(5)
    assert_equal_losses(CausalModel(one_stack(keys), SIZE), TextExamples(UNEVEN))


@pytest.mark.parametrize("keys", BLOCKS, ids=str)
def test_the_loss_of_a_masked_model_is_that_of_its_hidden_words(keys: dict[str, Any]) -> None:
    torch.manual_seed(5)
    hidden = [hide(ids, random.Random(f"{ids}"), SIZE) for _, ids in UNEVEN]
    examples = TextExamples(hidden, shifted=False)
    assert examples.batch([0, 1, 2]).target_tokens == 3
    assert_equal_losses(MaskedModel(one_stack(keys), SIZE), examples)


@pytest.mark.parametrize("keys", BLOCKS, ids=str)
def test_the_loss_of_a_classifier_is_that_of_its_labels(keys: dict[str, Any]) -> None:
    torch.manual_seed(5)
    labelled = [(source, [4 + line % 2]) for line, (source, _) in enumerate(UNEVEN)]
    examples = TextExamples(labelled, shifted=False)
    assert_equal_losses(Classifier(one_stack(keys), SIZE, 6), examples)


class Lookup(nn.Module):
    """A model whose likeliest next id is the input id plus one."""

    def __init__(self, certainty: float = 3.0) -> None:
        super().__init__()
        self.logits = nn.Parameter(certainty * torch.eye(SIZE).roll(1, 1))

    def forward(self, batch: Any, trace: object = None) -> Tensor:
        return self.logits[batch.target_in]


def test_predictions_are_summed_over_the_targets_and_kept_by_line() -> None:
    pairs: list[IdPair] = [([4], [5, 6, 7]), ([4], [9]), ([4], [5, 7])]
    predictions = predict(Lookup(), TextExamples(pairs), CONFIG, CPU)
    assert predictions.targets == 4 + 2 + 3
    lengths = [len(target) + 1 for _, target in pairs]
    guesses = [row[:length] for row, length in zip(predictions.guesses, lengths, strict=True)]
    assert guesses == [[1, 6, 7, 8], [1, 10], [1, 6, 8]]
    assert predictions.right == 2 and predictions.accuracy == pytest.approx(2 / 9)
    normaliser = math.log(math.exp(3) + SIZE - 1)
    assert predictions.log_probability == pytest.approx(2 * 3 - 9 * normaliser, rel=1e-5)
    assert predictions.perplexity == pytest.approx(math.exp(-predictions.log_probability / 9))
    batch = TextExamples(pairs).batch([0, 1, 2])
    sums = {"ignore_index": PAD, "label_smoothing": 0.2}
    expected = functional.cross_entropy(
        Lookup()(batch).flatten(0, 1).detach(), batch.targets.flatten(), **sums
    )
    assert predictions.mean_loss == pytest.approx(expected.item(), rel=1e-5)


def test_a_loss_that_is_not_finite_has_an_infinite_perplexity() -> None:
    predictions = predict(Lookup(math.nan), TextExamples(UNEVEN), CONFIG, CPU)
    assert math.isnan(predictions.mean_loss) and predictions.perplexity == math.inf


def test_workers_share_out_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    pairs = [([chance.randrange(4, SIZE)] * n, [5] * (n + 1)) for n in (3, 1, 7, 2, 5, 4)]
    model = Lookup().double()
    alone = predict(model, TextExamples(pairs), CONFIG, CPU)
    monkeypatch.setattr("seq2see.tasks.predict.VALIDATION_TOKENS", 8)  # a batch or two per worker
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    shared = predict(model, TextExamples(pairs), CONFIG, CPU)
    assert shared.loss == pytest.approx(alone.loss)
    assert shared.log_probability == pytest.approx(alone.log_probability)
    assert (shared.targets, shared.right) == (alone.targets, alone.right)
    lengths = [len(target) + 1 for _, target in pairs]
    for ours, theirs, length in zip(shared.guesses, alone.guesses, lengths, strict=True):
        assert ours[:length] == theirs[:length]
