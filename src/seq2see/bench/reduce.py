"""Speed and quality of a trained model on its test set, as its encoder merges or prunes tokens."""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from seq2see.bench.memory import peak_bytes
from seq2see.bench.reduce_workload import Workload
from seq2see.bench.rounds import medians, rounds, turns
from seq2see.layers.reduction.plans import Merging, TopPruning
from seq2see.layers.trace import Trace
from seq2see.models.reduced import (
    counts,
    operations,
    plan_of,
    with_merging,
    with_plan,
    with_pruning,
    with_top,
)
from seq2see.scoring.card import machine

FASTER = 1.03  # speed-ups below this may be noise
TOLERANCE = {"bleu": 0.3, "accuracy": 0.5}  # points that a setting which pays may lose


@dataclass(frozen=True)
class Setting:
    """A kind of reduction and its amount."""

    kind: str
    # Mean tokens merged per layer, the threshold of the last layer, or the share left after it.
    amount: float
    shares: tuple[float, ...] = field(default=(), kw_only=True)  # left after each layer, if uneven

    def __str__(self) -> str:
        plain = self.kind in (UNTOUCHED.kind, TRAINED.kind) or self.shares
        return self.kind if plain else f"{self.kind} {self.amount:g}"

    def apply(self, model: Any, seed: int = 1) -> Any:
        """Return the model under this setting; the seed matters to random settings alone."""
        if self.kind == UNTOUCHED.kind:
            return with_plan(model, None)
        if self.kind == TRAINED.kind:
            plan = plan_of(model)
            return with_plan(model, None if plan is None else plan.hard())
        method, _, variant = self.kind.partition(" ")
        drawn = seed if "random" in variant else None
        if method == "merge":
            match = "neighbours" if variant == "neighbours" else "bipartite"
            schedule = "decreasing" if variant == "decreasing" else "constant"
            return with_merging(model, int(self.amount), schedule, match, drawn)
        if method == "threshold":
            return with_pruning(model, self.amount)
        return with_top(model, self.shares or self.amount, drawn)


UNTOUCHED = Setting("untouched", 0)
TRAINED = Setting("as trained", 0)  # by the plan of the model's recipe, soft thresholds made hard


@dataclass(frozen=True)
class Row(Setting):
    """Figures of one setting: speeds are medians over the rounds, the rest does not vary."""

    per_second: float  # sentences or pictures, from input to answer
    encoded_per_second: float  # by the encoder alone
    layer_gflops: list[float]  # matrix products of each layer, per sentence or picture
    layer_tokens: list[float]  # mean number after each layer
    peak_memory_mb: float  # of the encoder on the largest batch
    quality: float  # BLEU or percent; the mean over the rounds, which matters to random settings
    gflops_share: float = 1.0  # of the untouched model's

    @property
    def gflops(self) -> float:
        return sum(self.layer_gflops)

    @property
    def tokens_left(self) -> float:
        return self.layer_tokens[-1]


@dataclass(frozen=True)
class Frontier:
    """Result of `bench reduce`."""

    text: str  # the test set
    count: int
    rounds: int
    measure: str  # of quality: bleu or accuracy
    trained: str | None  # the plan of the model's recipe, if it has one
    rows: list[Row]  # the untouched model first, then as trained
    pays: Row | None  # the fastest about as good as the untouched model, if clearly faster
    machine: dict[str, Any]


@dataclass(frozen=True)
class Pass:
    """One round of one setting."""

    per_second: float
    encoded_per_second: float
    quality: float


def settings(
    merges: Sequence[int], thresholds: Sequence[float], keeps: Sequence[float], text: bool = True
) -> list[Setting]:
    """Return every amount of every kind; merging neighbours makes sense for text alone.

    Random kinds are controls: they show what the choice of tokens is worth.
    """
    kinds = ["merge", "merge decreasing", "merge neighbours", "merge random"]
    if not text:
        kinds.remove("merge neighbours")
    return [
        *(Setting(kind, r) for kind in kinds for r in merges),
        *(Setting("threshold", threshold) for threshold in thresholds),
        *(Setting(kind, share) for kind in ("keep", "keep random") for share in keeps),
    ]


def bench_reduce(
    workload: Workload,
    requested: Sequence[Setting],
    seconds: float = 300.0,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Frontier:
    """Measure the model untouched, as trained and under all requested settings, in rounds.

    A model trained to prune is also measured with the same number of tokens in each layer, chosen
    otherwise. The untouched model uses fused attention, as it does wherever no weights are needed.
    """
    plan = plan_of(workload.model.eval())
    known = [UNTOUCHED] if plan is None else [UNTOUCHED, TRAINED, *_controls(workload)]
    passes: dict[Setting, list[Pass]] = {setting: [] for setting in (*known, *requested)}
    for number, setting in turns([*passes], rounds(seconds), alternate=True):
        say(f"round {number} · {setting}")
        passes[setting].append(_measure(workload, setting.apply(workload.model, seed=number)))
    rows = [
        _row(setting, setting.apply(workload.model), workload, measured)
        for setting, measured in passes.items()
    ]
    rows = [replace(row, gflops_share=row.gflops / rows[0].gflops) for row in rows]
    return Frontier(
        text=workload.name,
        count=workload.count,
        rounds=len(passes[UNTOUCHED]),
        measure=workload.measure,
        trained=None if plan is None else str(plan.hard()),
        rows=rows,
        pays=what_pays(rows, TOLERANCE[workload.measure]),
        machine=machine(),
    )


def _measure(workload: Workload, model: Any) -> Pass:
    _timed(partial(workload.warm_up, model))
    answers, spent = _timed(partial(workload.answer, model))
    per_second = workload.count / spent
    if workload.decodes:
        _, spent = _timed(partial(_encode_all, workload, model))
    return Pass(per_second, workload.count / spent, workload.quality(answers))


@torch.inference_mode()
def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begun


def _encode_all(workload: Workload, model: Any) -> None:
    for batch in workload.batches:
        workload.encode(model, batch, None)


def _controls(workload: Workload) -> list[Setting]:
    """Return settings that keep as many tokens per layer as the plan of a pruning model does.

    They keep the tokens that receive the most attention, or random ones.
    """
    plan = plan_of(workload.model)
    if isinstance(plan, Merging):
        return []
    _, tokens = _work(workload, TRAINED.apply(workload.model))
    shares = tuple((tokens[1:] / tokens[0]).tolist())
    kinds = ["keep as many", "keep random as many"]
    if isinstance(plan, TopPruning):
        kinds.remove("keep as many")  # the plan itself does that
    return [Setting(kind, shares[-1], shares=shares) for kind in kinds]


@torch.inference_mode()
def _work(workload: Workload, model: Any) -> tuple[Tensor, Tensor]:
    """Sum operations per layer, and tokens before and after each layer, over the test set."""
    plan = plan_of(model)
    totals = torch.zeros(len(model.encoder))
    left = torch.zeros(len(model.encoder) + 1)
    for batch in workload.batches:
        trace = Trace(weights=False)
        counted = model if plan is not None else with_merging(model, 0)
        workload.encode(counted, batch, trace)
        tokens = counts(workload.tokens(batch, trace), trace.reductions)
        totals += torch.tensor(operations(model.encoder, tokens, plan))
        left += torch.stack(tokens).sum(1)
    return totals, left


@torch.inference_mode()
def _row(setting: Setting, model: Any, workload: Workload, passes: Sequence[Pass]) -> Row:
    totals, left = _work(workload, model)
    largest = max(workload.batches, key=workload.size)
    middle = medians([asdict(measured) for measured in passes])
    return Row(
        **asdict(setting),
        per_second=middle["per_second"],
        encoded_per_second=middle["encoded_per_second"],
        layer_gflops=(totals / workload.count / 1e9).tolist(),
        layer_tokens=(left[1:] / workload.count).tolist(),
        peak_memory_mb=peak_bytes(partial(workload.encode, model, largest, None)) / 2**20,
        quality=statistics.mean(measured.quality for measured in passes),
    )


def what_pays(rows: Sequence[Row], tolerance: float) -> Row | None:
    """Return the fastest row within the tolerance of the first, if it is clearly faster."""
    untouched = rows[0]
    allowed = [
        row
        for row in rows
        if row.quality >= untouched.quality - tolerance and "random" not in row.kind
    ]
    best = max(allowed, key=lambda row: row.per_second)
    return best if best.per_second >= FASTER * untouched.per_second else None
