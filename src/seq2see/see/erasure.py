"""Erasure: leave out parts of the source, and see how far the target's log-probability falls.

Shapes: N sources, S source tokens with </s>, T target tokens with </s>.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from seq2see.batches import Batch, Ids, pad
from seq2see.text.specials import BEGIN, END

TOKENS_PER_PASS = 8192  # source and target, padding included


def batch_of(model: Any, sources: Tensor, target: Ids) -> Batch:
    """Ask for the same target from every source (N, S), which holds </s> if it is to be read."""
    rows = len(sources)
    target_in = torch.tensor([BEGIN, *target]).expand(rows, -1)
    target_out = torch.tensor([*target, END]).expand(rows, -1)
    device = next(model.parameters()).device
    return Batch(sources, target_in, target_out, list(range(rows))).to(device)


def log_p(model: Any, batch: Batch) -> Tensor:
    """Compute log p of each target token given those before it (N, T)."""
    by_id: Tensor = model(batch).log_softmax(-1)  # (N, T, V)
    return by_id.gather(-1, batch.target_out[..., None]).squeeze(-1)


def passes(rows: int, tokens: int) -> Iterator[slice]:
    """Cut rows of that many tokens into passes of bounded memory."""
    size = max(1, TOKENS_PER_PASS // tokens)
    for start in range(0, rows, size):
        yield slice(start, start + size)


@torch.no_grad()
def falls(model: Any, source: Ids, target: Ids, erased: Sequence[Collection[int]]) -> Tensor:
    """Compute the fall of log p of each target token for each set of erased positions (T, N).

    The last position of the source is that of </s>.
    """
    read = [*source, END]
    left = [[id for s, id in enumerate(read) if s not in positions] for positions in erased]
    sources = pad([read, *left])
    whole, *without = torch.cat(
        [
            log_p(model, batch_of(model, sources[rows], target))
            for rows in passes(len(sources), len(read) + len(target) + 1)
        ]
    )
    return torch.stack([whole - rest for rest in without], dim=1)


def leave_one_out(model: Any, source: Ids, target: Ids) -> Tensor:
    """log p(y | x) − log p(y | x without its s-th token), for each target token y: (T, S)."""
    return falls(model, source, target, [{s} for s in range(len(source) + 1)])
