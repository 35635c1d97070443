"""Dropout: the right share, a kept mean, the gradient of what was kept, and our own randomness."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from seq2see.layers.dropout import Dropout, drop, drop_relu, seeded


@pytest.mark.parametrize("p", [0.001, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_drops_its_share_and_keeps_the_mean(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x = torch.ones(1001, 997, dtype=dtype)  # an odd count: the last draw serves one number
    dropped = drop(x, p)
    assert dropped.dtype == dtype and dropped.shape == x.shape
    share = float((dropped == 0).double().mean())
    assert share == pytest.approx(p, abs=5 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-17)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)], rel=1e-3)
    # Numbers that share a draw fall independently of each other, and so do rows and columns.
    centred = (dropped == 0).double() - p
    for other in (centred.roll(1, 1), centred.roll(2, 1), centred.roll(1, 0)):
        assert abs(float((centred * other).mean())) < 5 * p * (1 - p) / x.numel() ** 0.5


def test_the_gradient_passes_where_the_number_did() -> None:
    torch.manual_seed(2)
    x = torch.randn(7, 13, requires_grad=True)
    dropped = drop(x, 0.4)
    dropped.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x, dropped)


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_dropped_relu_is_relu_then_dropout_forward_and_back(p: float) -> None:
    x = torch.randn(9, 31, dtype=torch.float64, requires_grad=True)
    results = []
    for function in (drop_relu, lambda x, p: drop(x.relu(), p)):
        with seeded(4):
            out = function(x, p)
        results.append([out, *torch.autograd.grad((out**2).sum(), x)])
    assert (results[0][0] == 0).any() and (results[0][0] > 0).any()
    torch.testing.assert_close(*results)


def test_the_seed_decides() -> None:
    x = torch.ones(50, 3)
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append(drop(x, 0.5))
    assert drawn[0].equal(drawn[1]) and not drawn[0].equal(drawn[2])


def test_nothing_is_dropped_at_zero_or_outside_training() -> None:
    x = torch.randn(5, 3)
    assert drop(x, 0.0) is x
    assert Dropout(0.5).eval()(x) is x
    assert (Dropout(0.5).train()(x) == 0).any()


@pytest.mark.parametrize("p", [-0.1, 1.0, 2.0])
def test_a_share_outside_its_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        drop(torch.ones(3), p)


def test_a_seeded_thread_draws_its_own_masks_whatever_others_draw() -> None:
    x = torch.ones(50, 3)
    with seeded(5):
        expected = [drop(x, 0.5), drop(x, 0.5)]
    assert not expected[0].equal(expected[1])
    torch.manual_seed(1)
    outside = drop(x, 0.5)
    barrier = threading.Barrier(2)

    def draw(seed: int) -> list[torch.Tensor]:
        with seeded(seed):
            dropped = []
            for _ in range(2):
                barrier.wait()
                dropped.append(drop(x, 0.5))
            return dropped

    torch.manual_seed(1)
    with ThreadPoolExecutor(2) as pool:
        ours, others = pool.map(draw, (5, 6))
    assert all(a.equal(b) for a, b in zip(ours, expected, strict=True))
    assert not others[0].equal(ours[0])
    assert drop(x, 0.5).equal(outside)  # and nothing was taken from torch's own
