"""Greedy and beam search over one protocol: any model with `encode`, `start` and `step`."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from seq2see.batches import Ids, pad
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.errors import WorkError
from seq2see.text.vocab import BEGIN, END, PAD
from seq2see.training.workers import share_out

TOKENS_PER_BATCH = 8192  # of the source, times the beam


class State(Protocol):
    def select(self, rows: Tensor) -> Any: ...


class Seq2Seq(Protocol):
    """What decoding needs of a model; it never asks which one it has."""

    def encode(self, source: Tensor) -> Any: ...
    def start(self, memory: Any) -> Any: ...
    def step(self, state: Any, ids: Tensor) -> tuple[Tensor, Any]: ...


def search(
    model: Seq2Seq,
    sources: Sequence[Ids],
    how: Search,
    n_best: int = 1,
    device: torch.device | None = None,
    batch_tokens: int = TOKENS_PER_BATCH,
) -> list[list[Hypothesis]]:
    """The n best translations of each source, in the order of the input; alike lengths share a batch."""
    how.check(n_best)
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    chunks = list[list[int]]()
    while len(order) > (start := sum(map(len, chunks))):
        longest = len(sources[order[start]]) + 1
        chunks.append(order[start : start + max(1, batch_tokens // (longest * how.beam))])

    def found(chunk: list[int]) -> list[list[Hypothesis]]:
        source = pad([[*sources[i], END] for i in chunk]).to(device)
        return greedy(model, source, how) if how.beam == 1 else beam_search(model, source, how)

    results: list[list[Hypothesis]] = [[] for _ in sources]
    workers = torch.get_num_threads() if device is None or device.type == "cpu" else 1
    for chunk, some in zip(chunks, share_out(found, chunks, workers), strict=True):
        for i, hypotheses in zip(chunk, some, strict=True):
            if not hypotheses or math.isnan(hypotheses[0].score):
                raise WorkError(
                    "the model gives no numbers (NaN) for its output; its weights are broken"
                )
            results[i] = hypotheses[:n_best]
    return results


def limits(source: Tensor, how: Search) -> Tensor:
    """The most target tokens, </s> included, for each sentence of a batch."""
    real = (source != PAD).sum(1) - 1  # </s> does not count
    return torch.tensor(
        [how.limit(tokens) for tokens in real.tolist()], device=source.device
    )  # (B,)


def _likeliest(
    logits: Tensor, position: int, at_limit: Tensor, how: Search, count: int
) -> tuple[Tensor, Tensor]:
    """log p and id of the likeliest next ids (N, count), without what must not come: <s> and padding, or by length."""
    logits = logits[:, -1]
    normaliser = logits.logsumexp(-1, keepdim=True)
    logits[:, [BEGIN, PAD]] = float("-inf")
    if position <= how.min_length:
        logits[:, END] = float("-inf")
    if at_limit.any():  # there a sentence can only end
        end = logits[:, END].clone()
        logits[at_limit] = float("-inf")
        logits[:, END] = end
    best, ids = logits.topk(min(count, logits.shape[-1]))
    return best - normaliser, ids


@torch.inference_mode()
def greedy(model: Seq2Seq, source: Tensor, how: Search) -> list[list[Hypothesis]]:
    """Take the likeliest id until </s>; a sentence that has ended leaves the computation."""
    longest = limits(source, how)
    state = model.start(model.encode(source))
    active = torch.arange(len(source), device=source.device)
    last = torch.full((len(source), 1), BEGIN, device=source.device)
    totals = [0.0] * len(source)
    ids: list[Ids] = [[] for _ in source]
    position = 0
    while len(active):
        position += 1
        logits, state = model.step(state, last)
        step, last = _likeliest(logits, position, position >= longest[active], how, 1)
        for sentence, id, log_p in zip(
            active.tolist(), last[:, 0].tolist(), step[:, 0].tolist(), strict=True
        ):
            totals[sentence] += log_p
            if id != END:
                ids[sentence].append(id)
        going = (last[:, 0] != END).nonzero()[:, 0]
        if len(going) < len(active):
            state, active, last = state.select(going), active[going], last[going]
    return [
        [Hypothesis(row, p, p / how.penalty(len(row) + 1))]
        for row, p in zip(ids, totals, strict=True)
    ]


@torch.inference_mode()
def beam_search(model: Seq2Seq, source: Tensor, how: Search) -> list[list[Hypothesis]]:
    """Keep the `beam` likeliest beginnings of every sentence at once; finished sentences leave the computation.

    A sentence is finished when `beam` hypotheses have ended and no open one scores better at its present length.
    """
    beam, device = how.beam, source.device
    longest = limits(source, how)
    state = model.start(model.encode(source))
    state = state.select(torch.arange(len(source), device=device).repeat_interleave(beam))
    active = torch.arange(len(source), device=device)  # (A,)
    history = torch.full((len(source), beam, 1), BEGIN, device=device)  # (A, beam, t)
    # All beams begin alike: only the first may be continued at first, or the search would find copies.
    totals = torch.full((len(source), beam), float("-inf"), device=device)
    totals[:, 0] = 0.0
    ended: list[list[Hypothesis]] = [[] for _ in source]
    position = 0
    while len(active):
        position += 1
        penalty = how.penalty(position)
        logits, state = model.step(state, history[:, :, -1].reshape(-1, 1))
        at_limit = (position >= longest[active]).repeat_interleave(beam)
        log_p, each = _likeliest(logits, position, at_limit, how, 2 * beam)
        candidates = totals[:, :, None] + log_p.view(len(active), beam, -1)  # (A, beam, 2 × beam)
        best, where = candidates.flatten(1).topk(
            min(2 * beam, candidates[0].numel())
        )  # (A, 2 × beam)
        origin, ids = where // candidates.shape[2], each.view(len(active), -1).gather(1, where)
        ends = ids == END
        for row, rank in (ends & best.isfinite())[:, :beam].nonzero().tolist():
            log_probability = float(best[row, rank])
            tokens = history[row, int(origin[row, rank]), 1:].tolist()
            ended[int(active[row])].append(
                Hypothesis(tokens, log_probability, log_probability / penalty)
            )
        # Of the twice as many candidates at least `beam` do not end; those go on, best first.
        going = (ends.long() * ends.shape[1] + torch.arange(ends.shape[1], device=device)).argsort(
            1
        )[:, :beam]
        totals = best.gather(1, going).masked_fill(ends.gather(1, going), float("-inf"))
        origin, ids = origin.gather(1, going), ids.gather(1, going)
        open_rows = [
            row
            for row, (sentence, top) in enumerate(
                zip(active.tolist(), totals[:, 0].tolist(), strict=True)
            )
            if top > float("-inf") and not _settled(ended[sentence], top / penalty, beam)
        ]
        kept = torch.tensor(open_rows, dtype=torch.long, device=device)
        totals, origin, ids = totals[kept], origin[kept], ids[kept]
        past = history[kept].gather(1, origin[:, :, None].expand(-1, -1, position))
        history = torch.cat([past, ids[:, :, None]], dim=2)
        state = state.select((kept[:, None] * beam + origin).flatten())
        active = active[kept]
    return [sorted(found, key=lambda each: -each.score)[:beam] for found in ended]


def _settled(ended: list[Hypothesis], best_open: float, beam: int) -> bool:
    scores = sorted((each.score for each in ended), reverse=True)
    return len(scores) >= beam and best_open <= scores[beam - 1]
