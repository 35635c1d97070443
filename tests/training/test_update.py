"""The gradient of an update: the same from one worker and from several, and the same again."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch, IdPair, collate, plan
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.text.vocab import PAD
from seq2see.training import update as gradients
from seq2see.training.update import TOKENS_OF_A_WORKER, Gradients, workers_for

CLASSES = 13
PAIRS: list[IdPair] = [
    (
        [4 + (3 * n + i) % 9 for i in range(1 + n % 5)],
        [4 + (5 * n + i) % 9 for i in range(1 + n % 7)],
    )
    for n in range(22)
]
BATCHES = [[0, 5, 9, 3, 7], [1], [20, 21, 2]]
CONFIG = TrainConfig(steps=1, label_smoothing=0.2)


def model(dropout: float = 0.0, tie: str = "all") -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(width=8, heads=2, encoder_layers=2, decoder_layers=2, dropout=dropout)
    return Transformer(config, CLASSES, CLASSES, tie).double().train()


def filled(network: Transformer, workers: int, key: str = "0") -> tuple[float, int, list[Tensor]]:
    loss, tokens = Gradients(network, CONFIG, workers).fill(PAIRS, BATCHES, key)
    return (
        loss,
        tokens,
        [weight.grad.clone() for weight in network.parameters() if weight.grad is not None],
    )


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("tie", ["all", "none"])
def test_workers_together_give_the_gradient_of_the_mean_loss_per_token(
    workers: int, tie: str
) -> None:
    """All sentences of the update are dealt out, to four workers not as many each."""
    network = model(tie=tie)
    loss, tokens, found = filled(network, workers)
    batch = collate(PAIRS, [line for lines in BATCHES for line in lines])
    logits, target = network(batch).flatten(0, 1), batch.target_out.flatten()
    sums = {"ignore_index": PAD, "label_smoothing": 0.2, "reduction": "sum"}
    expected = functional.cross_entropy(logits, target, **sums)  # type: ignore[arg-type]
    assert tokens == int((target != PAD).sum())
    assert loss == pytest.approx(float(expected.detach()), rel=1e-9)
    slopes = torch.autograd.grad(expected / tokens, list(network.parameters()))
    torch.testing.assert_close(found, list(slopes), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_batch_takes_several_passes_to_the_same_gradient(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def counting(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
        seen.append(len(lines) * max(len(side) + 1 for line in lines for side in pairs[line]))
        return collate(pairs, lines)

    network, lines = model(), range(len(PAIRS))
    whole = Gradients(network, CONFIG, workers).fill(PAIRS, [lines], "0")
    expected = [weight.grad for weight in network.parameters()]
    monkeypatch.setattr(gradients, "TOKENS_OF_A_PASS", 20)
    monkeypatch.setattr(gradients, "NUMBERS_OF_A_PASS", 20 * network.width)
    parts = Gradients(network, CONFIG, workers, counting).fill(PAIRS, [lines], "0")
    assert len(seen) > 2 and max(seen) <= 20 + 8  # and a sentence, where parts are uneven
    assert parts.tokens == whole.tokens and parts.loss == pytest.approx(whole.loss, rel=1e-9)
    torch.testing.assert_close(
        [weight.grad for weight in network.parameters()], expected, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_the_key_decides_the_dropout_bit_for_bit(workers: int) -> None:
    network = model(dropout=0.3)
    first, again, other = (filled(network, workers, key)[2] for key in ("a", "a", "b"))
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))


def test_workers_drop_different_numbers() -> None:
    """Two workers with the same sentence must not draw the same mask."""
    network = model(dropout=0.5)
    twice = [PAIRS[9], PAIRS[9]]
    one = Gradients(network, CONFIG, 1).fill(twice, [[0]], "a/0")
    both = Gradients(network, CONFIG, 2).fill(twice, [[0, 1]], "a")
    assert both.loss != pytest.approx(2 * one.loss, rel=1e-6)


def test_the_number_of_threads_is_left_as_it_was() -> None:
    before = torch.get_num_threads()
    filled(model(), 2)
    assert torch.get_num_threads() == before


def test_a_mistake_in_a_worker_comes_out() -> None:
    with pytest.raises(IndexError):
        Gradients(model(), CONFIG, 2).fill([([99], [5]), ([4], [5])], [[0, 1]], "a")


def test_what_a_failed_update_left_does_not_count() -> None:
    network = model()
    twice = Gradients(network, CONFIG, 2)
    with pytest.raises(IndexError):
        twice.fill(
            [([4], [5]), ([99], [5])], [[0, 1]], "a"
        )  # the first worker has its share already
    twice.fill(PAIRS, BATCHES, "0")
    found = [weight.grad for weight in network.parameters()]
    torch.testing.assert_close(found, filled(model(), 2)[2])


@pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 2), (8, 3)])
def test_every_worker_has_enough_to_do(
    threads: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    pairs: list[IdPair] = [([4] * 7, [4] * 7)] * 4000
    batches = plan(pairs, TrainConfig(steps=1, batch_tokens=3 * TOKENS_OF_A_WORKER + 64), epoch=1)
    assert workers_for(pairs, batches, 1, torch.device("cpu")) == expected
    assert workers_for(pairs, batches, 1, torch.device("meta")) == 1
    small = plan(pairs, TrainConfig(steps=1, batch_tokens=8), epoch=1)
    assert workers_for(pairs, small, 1, torch.device("cpu")) == 1
    assert workers_for(pairs, small, 2, torch.device("cpu")) == min(2, threads)
