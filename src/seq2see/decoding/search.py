"""Greedy and beam search over one protocol: any model with `encode`, `start` and `step`.

Shapes: B sentences, S source tokens, V vocabulary; A sentences still open, C candidates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from seq2see.batches import Ids, pad
from seq2see.decoding.hypotheses import BROKEN_MODEL, Hypothesis, Prefixes, Search
from seq2see.decoding.next_token import forced_at, likeliest
from seq2see.errors import WorkError
from seq2see.text.specials import BEGIN, END, PAD
from seq2see.training.workers import share_out

TOKENS_PER_BATCH = 8192  # source tokens × beam


class State(Protocol):
    """Everything that the next decoding step needs, one row per hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """Keep, repeat or reorder hypotheses."""
        ...


MemoryT = TypeVar("MemoryT")
StateT = TypeVar("StateT", bound=State)


class Seq2Seq(Protocol[MemoryT, StateT]):
    """A sequence-to-sequence model as decoding sees it; decoding never asks which one it has."""

    def encode(self, source: Tensor, /) -> MemoryT:
        """Source ids (B, S) → memory."""
        ...

    def start(self, memory: MemoryT, /) -> StateT:
        """The state before the first target token."""
        ...

    def step(self, state: StateT, ids: Tensor, /) -> tuple[Tensor, StateT]:
        """The next target ids (B, T ≥ 1) → logits (B, T, V) and the state after them."""
        ...


AnySeq2Seq = Seq2Seq[Any, Any]  # for callers to whom memory and state are opaque


@dataclass(frozen=True)
class Candidates:
    """Continuations of the open prefixes of each sentence, best first."""

    totals: Tensor  # (A, C), log-probability
    origins: Tensor  # (A, C), the prefix that a candidate continues
    ids: Tensor  # (A, C), the token it appends


@dataclass(frozen=True)
class Step:
    """One step of a search, as its observer is told of it."""

    active: Tensor  # (A,), the sentences that are still open
    candidates: Candidates
    ended: Tensor  # (A, C), True for candidates that are finished hypotheses
    kept: Tensor  # (A, beam), ranks of the candidates that become the next open prefixes


Observer = Callable[[Step], None]


def search(
    model: AnySeq2Seq,
    sources: Sequence[Ids],
    config: Search,
    n_best: int = 1,
    device: torch.device | None = None,
    batch_tokens: int = TOKENS_PER_BATCH,
    prefixes: Prefixes | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each source, best first, in the order of the sources.

    Hypotheses begin with the tokens of their prefix, if prefixes are given. An observer is told
    each step of the search for a single source.
    """
    config.check(n_best)
    if observer is not None and len(sources) > 1:
        raise ValueError(f"an observer follows one source, not {len(sources)}")
    if prefixes is not None:
        config.check_prefixes(sources, prefixes)
    batches = _batches(sources, config.beam, batch_tokens)

    def decode(batch: list[int]) -> list[list[Hypothesis]]:
        source = pad([[*sources[i], END] for i in batch]).to(device)
        method = greedy if config.beam == 1 else beam_search
        forced = None
        if prefixes is not None:
            forced = pad([[*prefixes[i]] for i in batch]).to(device)
        return method(model, source, config, forced, observer)

    results: list[list[Hypothesis]] = [[] for _ in sources]
    workers = torch.get_num_threads() if device is None or device.type == "cpu" else 1
    for batch, decoded in zip(batches, share_out(decode, batches, workers), strict=True):
        for i, hypotheses in zip(batch, decoded, strict=True):
            if not hypotheses or math.isnan(hypotheses[0].score):
                raise WorkError(BROKEN_MODEL)
            results[i] = hypotheses[:n_best]
    return results


def _batches(sources: Sequence[Ids], beam: int, batch_tokens: int) -> list[list[int]]:
    """Group the indices of sources of similar length, longest first."""
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    batches: list[list[int]] = []
    start = 0
    while start < len(order):
        longest = len(sources[order[start]]) + 1
        size = max(1, batch_tokens // (longest * beam))
        batches.append(order[start : start + size])
        start += size
    return batches


def limits(source: Tensor, config: Search, prefix: Tensor | None = None) -> Tensor:
    """Maximum number of target tokens, </s> included, for each sentence of a batch: (B,)."""
    lengths = (source != PAD).sum(1) - 1  # </s> does not count
    forced = torch.zeros_like(lengths) if prefix is None else (prefix != PAD).sum(1)
    pairs = zip(lengths.tolist(), forced.tolist(), strict=True)
    limit = [config.limit(length, tokens) for length, tokens in pairs]
    return torch.tensor(limit, device=source.device)


@torch.inference_mode()
def greedy(
    model: Seq2Seq[MemoryT, StateT],
    source: Tensor,
    config: Search,
    prefix: Tensor | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Take the likeliest token until </s>; finished sentences leave the computation."""
    limit = limits(source, config, prefix)
    state = model.start(model.encode(source))
    active = torch.arange(len(source), device=source.device)  # (A,)
    last = torch.full((len(source), 1), BEGIN, device=source.device)  # (A, 1)
    totals = [0.0] * len(source)
    ids: list[Ids] = [[] for _ in source]
    position = 0
    while len(active):
        position += 1
        logits, state = model.step(state, last)
        forced = forced_at(prefix, position)
        if forced is not None:
            forced = forced[active]
        best, last = likeliest(logits, position, position >= limit[active], config, 1, forced)
        tokens = zip(active.tolist(), last[:, 0].tolist(), best[:, 0].tolist(), strict=True)
        for sentence, id, log_p in tokens:
            totals[sentence] += log_p
            if id != END:
                ids[sentence].append(id)
        if observer is not None:
            sums = last.new_tensor([[totals[i]] for i in active.tolist()], dtype=torch.float64)
            only = torch.zeros_like(last)
            observer(Step(active, Candidates(sums, only, last), last == END, only))
        open_rows = (last[:, 0] != END).nonzero()[:, 0]
        if len(open_rows) < len(active):
            state = state.select(open_rows)
            active = active[open_rows]
            last = last[open_rows]
    return [
        [Hypothesis(row, total, total / config.penalty(len(row) + 1))]
        for row, total in zip(ids, totals, strict=True)
    ]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq[MemoryT, StateT],
    source: Tensor,
    config: Search,
    prefix: Tensor | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """Keep the `beam` likeliest prefixes of every sentence.

    A sentence is finished when `beam` hypotheses have ended and no open one scores better at its
    present length; finished sentences leave the computation.
    """
    beam = config.beam
    limit = limits(source, config, prefix)
    active = torch.arange(len(source), device=source.device)  # (A,)
    state = model.start(model.encode(source)).select(active.repeat_interleave(beam))
    prefixes = torch.full((len(source), beam, 1), BEGIN, device=source.device)  # (A, beam, t)
    # All prefixes of a sentence start equal: only one is open, or the beam would hold copies.
    totals = torch.full((len(source), beam), float("-inf"), device=source.device)  # (A, beam)
    totals[:, 0] = 0.0
    ended: list[list[Hypothesis]] = [[] for _ in source]
    position = 0
    while len(active):
        position += 1
        penalty = config.penalty(position)
        logits, state = model.step(state, prefixes[:, :, -1].reshape(-1, 1))
        at_limit = (position >= limit[active]).repeat_interleave(beam)
        forced = forced_at(prefix, position)
        if forced is not None:
            forced = forced[active].repeat_interleave(beam)
        log_p, ids = likeliest(logits, position, at_limit, config, 2 * beam, forced)
        candidates = _expand(totals, log_p, ids)
        ends = _ending(candidates, beam)
        _collect_ended(candidates, ends, prefixes, active, penalty, ended)
        kept = _ranks_to_keep(candidates, beam)
        if observer is not None:
            observer(Step(active, candidates, ends, kept))
        continuing = _keep_open(candidates, kept)
        rows = _unfinished(continuing.totals, active, penalty, ended)
        totals = continuing.totals[rows]
        origins = continuing.origins[rows]
        past = prefixes[rows].gather(1, origins[:, :, None].expand(-1, -1, position))
        prefixes = torch.cat([past, continuing.ids[rows][:, :, None]], dim=2)
        state = state.select((rows[:, None] * beam + origins).flatten())
        active = active[rows]
    return [sorted(hypotheses, key=lambda h: -h.score)[:beam] for hypotheses in ended]


def _expand(totals: Tensor, log_p: Tensor, ids: Tensor) -> Candidates:
    """Append to each prefix its likeliest tokens (A × beam, 2 × beam); keep the 2 × beam best."""
    sentences, beam = totals.shape
    continued = totals[:, :, None] + log_p.view(sentences, beam, -1)  # (A, beam, 2 × beam)
    size = min(2 * beam, continued[0].numel())
    best, places = continued.flatten(1).topk(size)  # (A, 2 × beam)
    return Candidates(best, places // log_p.shape[1], ids.view(sentences, -1).gather(1, places))


def _ending(candidates: Candidates, beam: int) -> Tensor:
    """Whether each candidate (A, C) ends and is among the `beam` best of its sentence."""
    ends = (candidates.ids == END) & candidates.totals.isfinite()
    ends[:, beam:] = False
    return ends


def _collect_ended(
    candidates: Candidates,
    ends: Tensor,
    prefixes: Tensor,
    active: Tensor,
    penalty: float,
    ended: list[list[Hypothesis]],
) -> None:
    """Move the candidates that end to the ended hypotheses of their sentences."""
    rows, ranks = ends.nonzero().T  # (E,) each
    sentences = active[rows].tolist()
    totals = candidates.totals[rows, ranks].tolist()
    tokens = prefixes[rows, candidates.origins[rows, ranks], 1:].tolist()
    for sentence, total, ids in zip(sentences, totals, tokens, strict=True):
        ended[sentence].append(Hypothesis(ids, total, total / penalty))


def _ranks_to_keep(candidates: Candidates, beam: int) -> Tensor:
    """Ranks (A, beam) of the best candidates that do not end.

    A prefix ends in one candidate only, so at least `beam` of the 2 × beam do not end, unless the
    limit leaves nothing else: then those that end fill the beam.
    """
    ends = candidates.ids == END
    size = ends.shape[1]
    ranks = torch.arange(size, device=ends.device)
    return (ends.long() * size + ranks).argsort(1)[:, :beam]


def _keep_open(candidates: Candidates, kept: Tensor) -> Candidates:
    """The candidates of these ranks; those that end get the log-probability −∞."""
    ids = candidates.ids.gather(1, kept)
    totals = candidates.totals.gather(1, kept).masked_fill(ids == END, float("-inf"))
    return Candidates(totals, candidates.origins.gather(1, kept), ids)


def _unfinished(
    totals: Tensor, active: Tensor, penalty: float, ended: list[list[Hypothesis]]
) -> Tensor:
    """Rows of the sentences whose best open hypothesis can still enter the n best."""
    best = zip(active.tolist(), totals[:, 0].tolist(), strict=True)
    rows = [
        row
        for row, (sentence, total) in enumerate(best)
        if total > float("-inf") and not _settled(ended[sentence], total / penalty, totals.shape[1])
    ]
    return torch.tensor(rows, dtype=torch.long, device=totals.device)


def _settled(ended: list[Hypothesis], best_open: float, beam: int) -> bool:
    scores = sorted((hypothesis.score for hypothesis in ended), reverse=True)
    return len(scores) >= beam and best_open <= scores[beam - 1]
