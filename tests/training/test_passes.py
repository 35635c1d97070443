"""Passes: every line once, of similar lengths, as many for everybody, dealt evenly."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from seq2see.batches import Lengths, TextExamples, epoch_batches
from seq2see.recipe.schema import TrainConfig
from seq2see.training.passes import PASSES, WORKER_TOKENS, cut, deal, usual_passes

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def lengths(count: int, longest: int = 19) -> Lengths:
    return np.random.default_rng(5).integers(1, longest, (count, 2))


@pytest.mark.parametrize("device", [CPU, GPU])
@pytest.mark.parametrize("longest", [float("inf"), 300])
def test_a_cut_has_every_line_once_and_similar_lengths(
    device: torch.device, longest: float
) -> None:
    sizes = lengths(400)
    batches = [list(range(0, 150)), list(range(170, 399))]
    passes = cut(sizes, batches, device, longest)
    assert sorted(line for lines in passes for line in lines) == [*batches[0], *batches[1]]
    longer = [[int(sizes[line].max()) for line in lines] for lines in passes]
    for first, second in pairwise(longer):
        assert min(first) >= max(second)
    tokens = [sum(one) for one in longer]
    assert max(tokens) - min(tokens) <= 2 * 19
    assert max(tokens) <= longest + 19


def test_a_gpu_takes_a_batch_at_once_and_a_cpu_in_two_passes_or_more() -> None:
    sizes = np.full((512, 2), 8)
    batches = [list(range(256)), list(range(256, 512))]
    assert len(cut(sizes, batches, GPU, float("inf"))) == 2
    assert len(cut(sizes, batches, CPU, float("inf"))) == 2 * PASSES
    assert len(cut(sizes, batches, CPU, longest=370)) == 12 == 6 * PASSES
    assert (
        len(cut(sizes, batches, CPU, longest=333)) == 14 == 7 * PASSES
    )  # 13 are needed: easier to share


def test_passes_are_not_too_small() -> None:
    sizes = TextExamples([([4] * 7, [4] * 7)] * 4000).lengths
    for tokens, accumulate, expected in [
        (WORKER_TOKENS + 64, 1, 1),
        (9 * WORKER_TOKENS, 1, 2),
        (8, 1, 1),
        (8, 2, 2),  # but each batch of an update is one
    ]:
        batches = epoch_batches(sizes, TrainConfig(steps=1, batch_tokens=tokens), epoch=1)
        assert usual_passes(sizes, batches, accumulate, CPU) == expected


def test_passes_are_dealt_by_work() -> None:
    work = [9, 1, 1, 7, 2, 2]
    shares = deal(work, 3)
    assert sorted(number for share in shares for number in share) == list(range(6))
    assert sorted(sum(work[number] for number in share) for share in shares) == [6, 7, 9]
    assert deal([4, 4], 3) == [[0], [1], []]
    assert deal([], 2) == [[], []]
