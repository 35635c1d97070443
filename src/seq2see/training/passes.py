"""The cut of an update into passes, which any number of processes and threads share out.

The cut is a function of recipe and corpus alone, so everybody adds up the same summands.
"""

import itertools
import math
from collections.abc import Sequence

import torch

from seq2see.batches import Lengths
from seq2see.errors import InputError
from seq2see.recipe.schema import TrainConfig

PASSES = 2  # of a batch on a CPU, at least, so that processes and threads can share it
WORKER_TOKENS = 256  # on the longer side of a pass; products of fewer are too small to be fast


def number_of_passes(
    tokens: float, batches: int, device: torch.device, longest: float = math.inf
) -> int:
    """Count the passes for this many tokens, on the longer side, and batches of an update.

    A pass has at most about `longest` tokens. A GPU takes each batch in one pass if it can.
    """
    if device.type != "cpu":
        return max(batches, math.ceil(tokens / longest))
    several = min(PASSES * batches, int(tokens / WORKER_TOKENS))
    needed = max(batches, several, math.ceil(tokens / longest))
    return needed if needed < PASSES else math.ceil(needed / PASSES) * PASSES


def usual_passes(
    lengths: Lengths,
    batches: Sequence[Sequence[int]],
    accumulate: int,
    device: torch.device,
    longest: float = math.inf,
) -> int:
    """Count the passes of an average update of `accumulate` batches."""
    tokens = accumulate * int(lengths.max(axis=1).sum()) / len(batches)
    return number_of_passes(tokens, accumulate, device, longest)


def too_few_passes(config: TrainConfig, passes: int, processes: int) -> InputError:
    """The error of a run with more processes than passes in an update."""
    enough = math.ceil(processes * config.accumulate / passes)
    cut_into = f"an update of train.accumulate = {config.accumulate} is cut into {passes} passes"
    way = f"train.accumulate = {enough}, or larger batches, would be enough"
    return InputError(f"{cut_into}, too few for {processes} processes; {way}")


def cut(
    lengths: Lengths, batches: Sequence[Sequence[int]], device: torch.device, longest: float
) -> list[list[int]]:
    """Cut the lines of an update into passes of similar lengths and about equally many tokens.

    The gradient is a sum over examples, so a pass need not be a batch. Padding included, it has not
    many more tokens than `longest` or the largest batch.
    """
    length = {line: int(lengths[line].max()) for batch in batches for line in batch}
    largest = max(len(batch) * max(length[line] for line in batch) for batch in batches)
    lines = [line for batch in batches for line in batch]
    lines.sort(key=lambda line: length[line], reverse=True)
    before = [0, *itertools.accumulate(length[line] for line in lines)]
    parts = number_of_passes(before[-1], len(batches), device, min(longest, largest))
    passes: list[list[int]] = [[] for _ in range(parts)]
    for line, tokens in zip(lines, before, strict=False):
        passes[tokens * parts // before[-1]].append(line)
    return [lines_of_pass for lines_of_pass in passes if lines_of_pass]


def deal(work: Sequence[int], hands: int) -> list[list[int]]:
    """Deal numbered passes by their work: the largest first, each to the least loaded hand."""
    shares: list[list[int]] = [[] for _ in range(hands)]
    loads = [0] * hands
    for number in sorted(range(len(work)), key=lambda number: work[number], reverse=True):
        least = loads.index(min(loads))
        shares[least].append(number)
        loads[least] += work[number]
    return [sorted(share) for share in shares]
