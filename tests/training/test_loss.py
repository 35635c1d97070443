"""The fused loss and its gradient against dense targets written out, in double precision."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2see.text.specials import PAD
from seq2see.training.loss import smoothed_loss, smoothed_loss_of

BATCH, LENGTH, CLASSES = 3, 5, 11


def example(seed: int) -> tuple[Tensor, Tensor]:
    """Logits (B, T, V) and targets (B, T) with padding at the ends, none in the first row."""
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(BATCH, LENGTH, CLASSES, generator=draw, dtype=torch.float64)
    target = torch.randint(PAD + 1, CLASSES, (BATCH, LENGTH), generator=draw)
    target[0, 0], target[1, 3:], target[2, 1:] = 1, PAD, PAD
    return logits, target


def dense(logits: Tensor, target: Tensor, epsilon: float, over: str) -> Tensor:
    """−Σ q log p with the distribution q written out, token by token; `others` less q's entropy."""
    total = logits.new_zeros(())
    for row, right in zip(logits.flatten(0, 1), target.flatten().tolist(), strict=True):
        if right == PAD:
            continue
        q = torch.full_like(row, epsilon / CLASSES if over == "all" else epsilon / (CLASSES - 2))
        if over == "all":
            q[right] += 1 - epsilon
        else:
            q[PAD], q[right] = 0.0, 1 - epsilon
        assert float(q.sum()) == pytest.approx(1)
        total = (
            total
            - (q * row.log_softmax(0)).sum()
            + (torch.xlogy(q, q).sum() if over == "others" else 0)
        )
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("over", ["all", "others"])
def test_loss_and_gradient_are_those_of_the_dense_target(
    over: str, epsilon: float, seed: int
) -> None:
    logits, target = example(seed)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, expected = (
        smoothed_loss(ours, target, epsilon, over),
        dense(theirs, target, epsilon, over),
    )
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    (0.3 * loss).backward()
    (0.3 * expected).backward()
    assert ours.grad is not None and theirs.grad is not None
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-10)
    assert not ours.grad[target == PAD].any()
    assert ours.grad[target != PAD].any(-1).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_all_is_torchs_label_smoothing_summed_over_tokens(epsilon: float) -> None:
    logits, target = example(4)
    expected = functional.cross_entropy(
        logits.flatten(0, 1),
        target.flatten(),
        ignore_index=PAD,
        label_smoothing=epsilon,
        reduction="sum",
    )
    torch.testing.assert_close(
        smoothed_loss(logits, target, epsilon), expected, rtol=1e-10, atol=1e-10
    )


def test_others_is_the_annotated_transformers_divergence() -> None:
    epsilon, (logits, target) = 0.1, example(5)
    true = torch.full((BATCH * LENGTH, CLASSES), epsilon / (CLASSES - 2), dtype=torch.float64)
    true.scatter_(1, target.flatten()[:, None], 1 - epsilon)
    true[:, PAD] = 0
    true[target.flatten() == PAD] = 0
    divergence = functional.kl_div(logits.flatten(0, 1).log_softmax(-1), true, reduction="sum")
    torch.testing.assert_close(smoothed_loss(logits, target, epsilon, "others"), divergence)


@pytest.mark.parametrize("over", ["all", "others"])
def test_gradcheck(over: str) -> None:
    logits, target = example(6)
    assert torch.autograd.gradcheck(
        lambda z: smoothed_loss(z, target, 0.1, over), logits.requires_grad_()
    )


def test_a_sum_over_tokens_adds_up_over_batches() -> None:
    logits, target = example(7)
    parts = sum(smoothed_loss(logits[i : i + 1], target[i : i + 1]) for i in range(BATCH))
    torch.testing.assert_close(smoothed_loss(logits, target), parts, rtol=1e-12, atol=1e-12)


def test_padding_alone_is_zero() -> None:
    logits = torch.randn(2, 3, CLASSES, dtype=torch.float64, requires_grad=True)
    loss = smoothed_loss(logits, torch.full((2, 3), PAD))
    loss.backward()
    assert loss.item() == 0 and logits.grad is not None and not logits.grad.any()


def test_large_logits_overflow_nowhere() -> None:
    logits = torch.tensor([[[1e4, -1e4, 0.0, 5e3, 0.0]]], requires_grad=True)
    loss = smoothed_loss(logits, torch.tensor([[1]]), 0.0)
    loss.backward()
    assert loss.item() == pytest.approx(2e4)
    assert logits.grad is not None and logits.grad.flatten().tolist() == [1, -1, 0, 0, 0]


@pytest.mark.parametrize("classes", [CLASSES, 16, 33])
@pytest.mark.parametrize("over", ["all", "others"])
def test_the_loss_of_states_is_that_of_their_logits(over: str, classes: int) -> None:
    torch.manual_seed(8)
    output = torch.nn.Linear(7, classes).double()
    states, target = (
        torch.randn(6, 7, dtype=torch.float64, requires_grad=True),
        torch.randint(PAD + 1, classes, (6,)),
    )
    losses = (
        smoothed_loss_of(states, output, target, 0.1, over),
        smoothed_loss(output(states), target, 0.1, over),
    )
    torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad(0.3 * loss, [states, *output.parameters()]) for loss in losses]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


def test_the_loss_of_states_has_its_gradient_once() -> None:
    states, output = torch.randn(2, 7, requires_grad=True), torch.nn.Linear(7, CLASSES)
    loss = smoothed_loss_of(states, output, torch.tensor([3, 4]))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
