"""Text generation with a language model: one token after the other, drawn at random."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from seq2see.batches import Ids
from seq2see.decoding.hypotheses import BROKEN_MODEL
from seq2see.decoding.search import State
from seq2see.errors import WorkError
from seq2see.text.specials import BEGIN, END, PAD

PastT = TypeVar("PastT", bound=State)


class Causal(Protocol[PastT]):
    """A language model as sampling sees it; sampling never asks which one it has."""

    def start(self, texts: int, /) -> PastT:
        """Begin a number of texts, all empty."""
        ...

    def step(self, past: PastT, ids: Tensor, /) -> tuple[Tensor, PastT]:
        """The next ids (B, T ≥ 1) → logits (B, T, V) and the past grown by them."""
        ...


@dataclass(frozen=True)
class Sampling:
    """Settings for drawing the next token."""

    temperature: float = 1.0  # below 1 sharpens the distribution; 0 takes the likeliest token
    top_k: int = 0  # draw from the k likeliest tokens only; 0: from all
    top_p: float = 1.0  # draw from the smallest set of total probability p only (nucleus); 1: all
    seed: int = 1


@dataclass(frozen=True)
class Continuation:
    """Tokens generated after a prompt, and their log-probability before temperature and cuts."""

    ids: Ids  # without </s>
    log_probability: float  # with </s>, if it was drawn


def narrowed(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits (N, V) → probabilities after temperature, then top-k, then top-p."""
    if sampling.temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    logits = logits / sampling.temperature
    if sampling.top_k:
        least = logits.topk(min(sampling.top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    probabilities = logits.softmax(-1)
    if sampling.top_p < 1:
        ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p  # likelier ones already reach p
        nucleus = ordered.masked_fill(beyond, 0.0)
        probabilities = torch.zeros_like(ordered).scatter_(-1, ids, nucleus)
        probabilities /= probabilities.sum(-1, keepdim=True)
    return probabilities


def draw(probabilities: Tensor, chances: Sequence[float]) -> Tensor:
    """Draw one id per row (N, V) by inverting the cumulative sum at a chance in [0, 1): (N, 1)."""
    sums = probabilities.double().cumsum(-1)
    uniform = torch.tensor(chances, dtype=sums.dtype, device=sums.device)[:, None]
    thresholds = sums[:, -1:] * uniform
    return torch.searchsorted(sums, thresholds, right=True).clamp(max=sums.shape[-1] - 1)


@torch.inference_mode()
def generate(
    model: Causal[PastT],
    prompt: Ids,
    sampling: Sampling,
    count: int,
    longest: int,
    device: torch.device | None = None,
) -> list[Continuation]:
    """Continue a prompt `count` times, up to `longest` ids including the prompt.

    A continuation depends on the seed and its own number alone, not on `count`.
    """
    chances = [random.Random(f"generate/{sampling.seed}/{number}") for number in range(count)]
    logits, past = model.step(model.start(1), torch.tensor([[BEGIN, *prompt]], device=device))
    active = torch.arange(count, device=device)  # texts without </s>
    logits = logits[:, -1].expand(count, -1)  # (N, V)
    past = past.select(torch.zeros_like(active))
    never = torch.tensor([BEGIN, PAD], device=device)
    ids: list[Ids] = [[] for _ in range(count)]
    totals = [0.0] * count
    while len(active):
        log_p = logits.log_softmax(-1)
        if not log_p.isfinite().all():
            raise WorkError(BROKEN_MODEL)
        probabilities = narrowed(logits.index_fill(-1, never, float("-inf")), sampling)
        drawn = draw(probabilities, [chances[text].random() for text in active.tolist()])
        drawn_log_p = log_p.gather(-1, drawn)[:, 0].tolist()
        for text, id, gain in zip(active.tolist(), drawn[:, 0].tolist(), drawn_log_p, strict=True):
            totals[text] += gain
            if id != END:
                ids[text].append(id)
        if len(prompt) + max(map(len, ids)) >= longest:
            break
        open_rows = (drawn[:, 0] != END).nonzero()[:, 0]
        active = active[open_rows]
        if len(active):
            logits, past = model.step(past.select(open_rows), drawn[open_rows])
            logits = logits[:, -1]
    return [Continuation(row, total) for row, total in zip(ids, totals, strict=True)]
