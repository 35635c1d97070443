"""Sampling: the distribution that ids are drawn from, and how often each is drawn."""

import random
from collections import Counter

import pytest
import torch

from seq2see.decoding import sampling
from seq2see.decoding.sampling import Sampling


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Sampling(temperature=1), [0.5, 0.25, 0.125, 0.125]),
        (Sampling(temperature=0), [1, 0, 0, 0]),
        (Sampling(temperature=0.5), [16 / 22, 4 / 22, 1 / 22, 1 / 22]),
        (Sampling(top_k=2), [2 / 3, 1 / 3, 0, 0]),
        (Sampling(top_k=9), [0.5, 0.25, 0.125, 0.125]),
        (Sampling(top_p=0.5), [1, 0, 0, 0]),
        (Sampling(top_p=0.6), [2 / 3, 1 / 3, 0, 0]),
        (Sampling(top_p=0.8), [4 / 7, 2 / 7, 1 / 7, 0]),
        (Sampling(top_k=2, top_p=0.66), [1, 0, 0, 0]),
    ],
)
def test_temperature_and_truncation_shape_the_distribution(
    config: Sampling, expected: list[float]
) -> None:
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).log()
    probabilities = sampling.narrowed(logits, config)
    torch.testing.assert_close(probabilities, torch.tensor([expected], dtype=torch.float64))


def test_ids_are_drawn_as_often_as_they_are_likely() -> None:
    probabilities = torch.tensor([[0.5, 0.0, 0.3, 0.2]]).expand(4000, -1)
    chance = random.Random(1)
    numbers = [chance.random() for _ in range(4000)]
    counts = Counter(sampling.draw(probabilities, numbers)[:, 0].tolist())
    assert counts[1] == 0 and counts[0] / 4000 == pytest.approx(0.5, abs=0.03)
    assert counts[2] / 4000 == pytest.approx(0.3, abs=0.03)
    assert sampling.draw(probabilities[:2], [0.0, 1 - 2**-53])[:, 0].tolist() == [0, 3]
