"""Writing with a language model: one id after the other, drawn from what the model expects."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2see.batches import Ids
from seq2see.errors import WorkError
from seq2see.models.language import CausalModel
from seq2see.text.vocab import BEGIN, END, PAD


@dataclass(frozen=True)
class Sampling:
    """How the next id is drawn."""

    temperature: float = 1.0  # below 1 the likely gets likelier; 0 takes the likeliest
    top_k: int = 0  # of the k likeliest only; 0 for all
    top_p: float = 1.0  # of the fewest whose probabilities reach p only; 1 for all
    seed: int = 1


@dataclass(frozen=True)
class Continuation:
    """Ids written after a prompt, without </s>, and the model's own log-probability of them, with it if it came."""

    ids: Ids
    log_probability: float


def narrowed(logits: Tensor, how: Sampling) -> Tensor:
    """Logits (N, V) → the probabilities that are drawn from: temperature, then top-k, then top-p."""
    if how.temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    logits = logits / how.temperature
    if how.top_k:
        least = logits.topk(min(how.top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    probabilities = logits.softmax(-1)
    if how.top_p < 1:
        ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        beyond = ordered.cumsum(-1) - ordered >= how.top_p  # those before reach p already
        probabilities = torch.zeros_like(ordered).scatter_(
            -1, ids, ordered.masked_fill(beyond, 0.0)
        )
        probabilities /= probabilities.sum(-1, keepdim=True)
    return probabilities


def draw(probabilities: Tensor, chances: Sequence[float]) -> Tensor:
    """One id for each row (N, V): where the sum of the probabilities passes the chance, a number from 0 to 1."""
    sums = probabilities.double().cumsum(-1)
    wanted = sums[:, -1:] * torch.tensor(chances, dtype=sums.dtype, device=sums.device)[:, None]
    return torch.searchsorted(sums, wanted, right=True).clamp(max=sums.shape[-1] - 1)  # (N, 1)


@torch.inference_mode()
def generate(
    model: CausalModel, prompt: Ids, how: Sampling, count: int, longest: int
) -> list[Continuation]:
    """`count` texts after a prompt, each of at most `longest` ids with it.

    What is drawn for a text depends on the seed and its number alone, not on how many others are written.
    """
    model.eval()
    chances = [random.Random(f"generate/{how.seed}/{number}") for number in range(count)]
    device = model.output.weight.device
    logits, past = model.step(model.start(1), torch.tensor([[BEGIN, *prompt]], device=device))
    active = torch.arange(count, device=device)
    logits, past = logits[:, -1].expand(count, -1), past.select(torch.zeros_like(active))
    ids: list[Ids] = [[] for _ in range(count)]
    totals = [0.0] * count
    while len(active):
        log_p = logits.log_softmax(-1)
        if not log_p.isfinite().all():
            raise WorkError(
                "the model gives no numbers (NaN) for its output; its weights are broken"
            )
        allowed = logits.index_fill(-1, torch.tensor([BEGIN, PAD], device=device), float("-inf"))
        drawn = draw(narrowed(allowed, how), [chances[text].random() for text in active.tolist()])
        for text, id, each in zip(
            active.tolist(), drawn[:, 0].tolist(), log_p.gather(-1, drawn).tolist(), strict=True
        ):
            totals[text] += each[0]
            if id != END:
                ids[text].append(id)
        full = len(prompt) + max(map(len, ids)) >= longest
        going = (drawn[:, 0] != END).nonzero()[:, 0] if not full else active[:0]
        active, drawn = active[going], drawn[going]
        if len(active):
            logits, past = model.step(past.select(going), drawn)
            logits = logits[:, -1]
    return [Continuation(row, total) for row, total in zip(ids, totals, strict=True)]
