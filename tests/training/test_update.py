"""The gradient of an update: one and several workers agree, and the same key gives equal bits."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch, IdPair, TextExamples, collate
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD
from seq2see.training.loss import smoothed_loss
from seq2see.training.update import Gradients, workers_for

CLASSES = 13
PAIRS: list[IdPair] = [
    (
        [4 + (3 * n + i) % 9 for i in range(1 + n % 5)],
        [4 + (5 * n + i) % 9 for i in range(1 + n % 7)],
    )
    for n in range(22)
]
BATCHES = [[0, 5, 9, 3, 7], [1], [20, 21, 2]]
EXAMPLES = TextExamples(PAIRS)


def model(dropout: float = 0.0, tie: str = "all") -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(width=8, heads=2, encoder_layers=2, decoder_layers=2, dropout=dropout)
    return Transformer(config, CLASSES, CLASSES, tie).double().train()


def loss_of(network: nn.Module, batch: Batch) -> Tensor:
    return smoothed_loss(network(batch), batch.targets, 0.2)


def filled(network: Transformer, workers: int, key: str = "0") -> tuple[float, int, list[Tensor]]:
    loss, targets = Gradients(network, loss_of, workers).fill(EXAMPLES, BATCHES, key)
    gradients = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    return loss, targets, gradients


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("tie", ["all", "none"])
def test_workers_together_give_the_gradient_of_the_mean_loss_per_token(
    workers: int, tie: str
) -> None:
    """All sentences of the update are dealt out; of four workers, some get more than others."""
    network = model(tie=tie)
    loss, targets, gradients = filled(network, workers)
    batch = collate(PAIRS, [line for lines in BATCHES for line in lines])
    logits, target = network(batch).flatten(0, 1), batch.target_out.flatten()
    sums = {"ignore_index": PAD, "label_smoothing": 0.2, "reduction": "sum"}
    expected = functional.cross_entropy(logits, target, **sums)  # type: ignore[arg-type]
    assert targets == int((target != PAD).sum())
    assert loss == pytest.approx(float(expected.detach()), rel=1e-9)
    slopes = torch.autograd.grad(expected / targets, list(network.parameters()))
    torch.testing.assert_close(gradients, list(slopes), rtol=1e-8, atol=1e-12)


def test_products_in_bfloat16_give_about_the_same_gradient_in_float32() -> None:
    network = model().float()
    loss, targets, exact = filled(network, workers=2)
    gradients = Gradients(network, loss_of, 2, dtype=torch.bfloat16)
    rounded = gradients.fill(EXAMPLES, BATCHES, "0")
    assert rounded.targets == targets
    assert rounded.loss != loss and rounded.loss == pytest.approx(loss, rel=0.003)
    both = [torch.cat([g.flatten() for g in exact])]
    both.append(torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]))
    assert both[1].dtype == torch.float32
    assert functional.cosine_similarity(*both, dim=0) > 0.99
    assert gradients.fill(EXAMPLES, BATCHES, "0") == rounded
    again = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    assert torch.equal(again, both[1])


class Counting(TextExamples):
    """Examples that note the size of each batch, padding included."""

    def __init__(self, pairs: Sequence[IdPair]) -> None:
        super().__init__(pairs)
        self.tokens: list[int] = []

    def batch(self, lines: Sequence[int]) -> Batch:
        self.tokens.append(len(lines) * int(self.lengths[lines].max()))
        return super().batch(lines)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_batch_takes_several_passes_to_the_same_gradient(workers: int) -> None:
    network, batches = model(), [range(len(PAIRS))]
    whole = Gradients(network, loss_of, workers).fill(EXAMPLES, batches, "0")
    expected = [weight.grad for weight in network.parameters()]
    counting = Counting(PAIRS)
    parts = Gradients(network, loss_of, workers, pass_tokens=20).fill(counting, batches, "0")
    # An uneven pass may have one sentence more.
    assert len(counting.tokens) > 2 and max(counting.tokens) <= 20 + 8
    assert parts.targets == whole.targets and parts.loss == pytest.approx(whole.loss, rel=1e-9)
    gradients = [weight.grad for weight in network.parameters()]
    torch.testing.assert_close(gradients, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_key_decides_the_dropout_bit_for_bit(workers: int) -> None:
    network = model(dropout=0.3)
    first, again, other = (filled(network, workers, key)[2] for key in ("a", "a", "b"))
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))


def test_passes_draw_different_dropout_masks() -> None:
    """Two passes over the same sentence must not draw the same mask."""
    network = model(dropout=0.5)
    twice = TextExamples([PAIRS[9], PAIRS[9]])
    one = Gradients(network, loss_of, 1).fill(twice, [[0]], "a")
    both = Gradients(network, loss_of, 1).fill(twice, [[0], [1]], "a")
    assert both.loss != pytest.approx(2 * one.loss, rel=1e-6)


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_any_number_of_workers_draws_the_same_dropout_masks(workers: int) -> None:
    network = model(dropout=0.4)
    loss, _, gradients = filled(network, 1)
    other_loss, _, others = filled(network, workers)
    assert other_loss == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(others, gradients, rtol=1e-9, atol=1e-12)


def test_the_number_of_threads_is_left_as_it_was() -> None:
    before = torch.get_num_threads()
    filled(model(), 2)
    assert torch.get_num_threads() == before


def test_an_error_in_a_worker_is_raised() -> None:
    wrong = TextExamples([([99], [5]), ([4], [5])])
    with pytest.raises(IndexError):
        Gradients(model(), loss_of, 2).fill(wrong, [[0, 1]], "a")


def test_gradients_of_a_failed_update_do_not_count() -> None:
    network = model()
    twice = Gradients(network, loss_of, 2)
    wrong = TextExamples([([4], [5]), ([99], [5])])  # the first worker finishes its share
    with pytest.raises(IndexError):
        twice.fill(wrong, [[0], [1]], "a")
    twice.fill(EXAMPLES, BATCHES, "0")
    gradients = [weight.grad for weight in network.parameters()]
    torch.testing.assert_close(gradients, filled(model(), 2)[2])


@pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 2), (8, 3)])
def test_every_worker_has_a_pass(
    threads: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert workers_for(3, torch.device("cpu")) == expected
    assert workers_for(3, torch.device("meta")) == 1
