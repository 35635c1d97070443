"""Label smoothing in figures: distributions, least losses, and the constant between two forms."""

import pytest
import torch

from seq2see.see import smoothing
from seq2see.see.numbers import numbers_of
from seq2see.text.specials import PAD


@pytest.mark.parametrize(("classes", "epsilon"), [(7, 0.1), (30, 0.25)])
def test_the_target_is_a_distribution(classes: int, epsilon: float) -> None:
    for over in ("all", "others"):
        q = smoothing.distribution(classes, epsilon, over)
        assert q.shape == (classes,) and float(q.sum()) == pytest.approx(1)
        assert int(q.argmax()) == smoothing.TARGET
    assert float(q[PAD]) == 0


@pytest.mark.parametrize(("classes", "epsilon"), [(7, 0.1), (30, 0.25)])
def test_losses_are_least_at_the_target(classes: int, epsilon: float) -> None:
    best = 1 - epsilon + epsilon / classes
    _, hard, smoothed, _, _ = smoothing.measure(classes, epsilon, [best - 0.01, best, best + 0.01])
    assert hard[0] > hard[1] > hard[2]
    assert smoothed[0] > smoothed[1] < smoothed[2]
    _, _, _, _, divergence = smoothing.measure(
        classes, epsilon, [0.97 - epsilon, 1 - epsilon, 1.03 - epsilon]
    )
    assert divergence[0] > divergence[1] < divergence[2]
    assert divergence[1] == pytest.approx(0, abs=1e-9)


def test_cross_entropy_and_divergence_differ_by_the_entropy() -> None:
    curves = smoothing.measure(11, 0.1)
    gaps = torch.tensor(curves.cross_entropy) - torch.tensor(curves.divergence)
    assert gaps.numpy() == pytest.approx(smoothing.entropy(11, 0.1), abs=1e-5)
    q = smoothing.distribution(11, 0.1, "others")
    assert smoothing.entropy(11, 0.1) == pytest.approx(float(-torch.xlogy(q, q).sum()))


def test_the_figure_has_the_numbers() -> None:
    target, losses, forms = numbers_of(smoothing.draw(7, 0.1))
    assert [len(target.head), len(losses.head), len(forms.head)] == [3, 3, 3]
    assert len(target.rows) == 7 and target.rows[PAD][2] == "0"
    report = smoothing.report(7, 0.1)
    assert report[1].split()[:2] == ["0.5", "0.693"]
    assert report[-1].endswith(f"= {smoothing.entropy(7, 0.1):.4f}")
