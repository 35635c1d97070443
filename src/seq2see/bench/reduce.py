"""What merging and pruning save and what they cost: a trained model on its test set, with fewer and fewer tokens."""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2see.batches import Batch, IdPair, collate
from seq2see.bench.attention_worker import peak_bytes
from seq2see.bench.translate import Text, own_text
from seq2see.errors import InputError
from seq2see.layers.reduction.encoder import Reducible, counts, operations
from seq2see.layers.reduction.plans import Merging, TopPruning
from seq2see.layers.trace import Trace
from seq2see.pictures import datasets
from seq2see.scoring.bleu import machine, score
from seq2see.tasks.images import load_pictures
from seq2see.tasks.text import collate_of, encode, fitting
from seq2see.tasks.translate import Translator, load, opened, recipe_of
from seq2see.text import corpora
from seq2see.text.vocab import PAD

FASTER = 1.03  # times: less may be noise
WARM = 4  # sentences
TOLERANCE = {"bleu": 0.3, "accuracy": 0.5}  # of a hundred: what a setting that pays may lose


@dataclass(frozen=True)
class Setting:
    """A way to go on with fewer tokens, and how far."""

    kind: str
    amount: float  # tokens merged in each layer (in the mean); the last layer's threshold; the share left after it
    shares: tuple[float, ...] = field(
        default=(), kw_only=True
    )  # left after each layer, where these are not even steps

    def __str__(self) -> str:
        plain = self.kind in (UNTOUCHED.kind, TRAINED.kind) or self.shares
        return self.kind if plain else f"{self.kind} {self.amount:g}"

    def of(self, model: Reducible, seed: int = 1) -> Reducible:
        """The model under this setting; if it is a random one, with this seed."""
        if self.kind == UNTOUCHED.kind:
            return model.with_plan(None)
        if self.kind == TRAINED.kind:
            return model.with_plan(model.plan.hard())
        way, _, which = self.kind.partition(" ")
        drawn = seed if "random" in which else None
        if way == "merge":
            match = "neighbours" if which == "neighbours" else "bipartite"
            schedule = "decreasing" if which == "decreasing" else "constant"
            return model.with_merging(int(self.amount), schedule, match, drawn)
        if way == "threshold":
            return model.with_pruning(self.amount)
        return model.with_top(self.shares or self.amount, drawn)


UNTOUCHED = Setting("untouched", 0)
TRAINED = Setting(
    "as trained", 0
)  # by the plan of the model's own recipe, soft thresholds taken hard


@dataclass(frozen=True)
class Row(Setting):
    """A setting and what was measured: medians of speeds, and the rest, which is always the same."""

    per_second: float  # sentences or pictures, from input to answer
    encoded_per_second: float  # by the encoder alone
    layer_gflops: list[
        float
    ]  # of each layer's matrix products, for one sentence or picture in the mean
    layer_tokens: list[float]  # after each layer, of one in the mean
    peak_memory_mb: float  # of the encoder on the largest batch
    quality: float  # of a hundred; of random settings the mean over the rounds
    gflops_share: float = 1.0  # of those of the untouched model

    @property
    def gflops(self) -> float:
        return sum(self.layer_gflops)

    @property
    def tokens_left(self) -> float:
        return self.layer_tokens[-1]


@dataclass(frozen=True)
class Frontier:
    """What `bench reduce` found."""

    text: str  # the test set
    count: int
    rounds: int
    measure: str  # of quality: bleu or accuracy
    trained: str | None  # the plan of the model's own recipe, if it has one
    rows: list[Row]  # the untouched model first, then as it was trained to be
    pays: (
        Row | None
    )  # the fastest that is about as good as the untouched model, if it is any faster
    machine: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What a model does with its test set."""

    model: Reducible
    name: str
    batches: list[Batch]
    measure: str
    answer: Callable[[Any], Any]
    quality: Callable[[Any], float]
    encode: Callable[[Any, Batch, Trace | None], object]
    warm: Callable[[Any], object]  # a little of `answer`: the first time costs more
    decodes: bool  # whether there is more to an answer than the encoder


def settings(
    merges: Sequence[int], thresholds: Sequence[float], keeps: Sequence[float], text: bool = True
) -> list[Setting]:
    """Every amount in every way; side by side alone is for text, and random ones show what the choice is worth."""
    ways = ["merge", "merge decreasing", *(["merge neighbours"] if text else []), "merge random"]
    found = [Setting(way, r) for way in ways for r in merges]
    found += [Setting("threshold", each) for each in thresholds]
    return found + [Setting(way, share) for way in ("keep", "keep random") for share in keeps]


def bench_reduce(
    task: Task,
    wanted: Sequence[Setting],
    seconds: float = 300.0,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Frontier:
    """Measure the model untouched, as trained and under all settings in turn, again while the seconds allow a round.

    One that was trained to prune is also measured with as many tokens in each layer that are chosen otherwise.

    What disturbs the machine for a while then disturbs one round of each, and medians do not show it; every other round
    goes backwards. The untouched model has the fused attention, as always where nobody wants to see the weights.
    """
    own = task.model.eval().plan
    known = [UNTOUCHED] if own is None else [UNTOUCHED, TRAINED, *_as_many(task)]
    seen = {setting: Seen([], [], []) for setting in (*known, *wanted)}
    count, begun, rounds = sum(len(each.lines) for each in task.batches), time.perf_counter(), 0
    while not rounds or (time.perf_counter() - begun) * (rounds + 1) / rounds <= seconds:
        rounds += 1
        for setting in seen if rounds % 2 else reversed(seen):
            say(f"round {rounds} · {setting}")
            model = setting.of(task.model, seed=rounds)
            _timed(partial(task.warm, model))
            answers, spent = _timed(partial(task.answer, model))
            seen[setting].whole.append(count / spent)
            if task.decodes:
                _, spent = _timed(partial(_encode_all, task, model))
            seen[setting].encoder.append(count / spent)
            seen[setting].quality.append(task.quality(answers))
    rows = [_row(setting, setting.of(task.model), task, found) for setting, found in seen.items()]
    rows = [replace(row, gflops_share=row.gflops / rows[0].gflops) for row in rows]
    return Frontier(
        text=task.name,
        count=count,
        rounds=rounds,
        measure=task.measure,
        trained=None if own is None else str(own.hard()),
        rows=rows,
        pays=what_pays(rows, TOLERANCE[task.measure]),
        machine=machine(),
    )


class Seen(NamedTuple):
    """Sentences or pictures a second and how good the answers were, round after round."""

    whole: list[float]
    encoder: list[float]
    quality: list[float]


@torch.inference_mode()
def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    found = run()
    return found, time.perf_counter() - begun


def _encode_all(task: Task, model: Reducible) -> None:
    for batch in task.batches:
        task.encode(model, batch, None)


def _as_many(task: Task) -> list[Setting]:
    """Of a model that prunes: as many tokens in each layer, but those looked at most, or any."""
    if isinstance(task.model.plan, Merging):
        return []
    _, tokens = _work(task, TRAINED.of(task.model))
    shares = tuple((tokens[1:] / tokens[0]).tolist())
    ways = ["keep as many", "keep random as many"]
    if isinstance(task.model.plan, TopPruning):
        ways.remove("keep as many")  # that is what it does
    return [Setting(way, shares[-1], shares=shares) for way in ways]


@torch.inference_mode()
def _work(task: Task, model: Reducible) -> tuple[Tensor, Tensor]:
    """Operations of each layer; tokens before the layers and after each: of all sentences or pictures together."""
    totals, left = torch.zeros(len(model.encoder)), torch.zeros(len(model.encoder) + 1)
    for batch in task.batches:
        trace = Trace(weights=False)
        task.encode(model if model.plan is not None else model.with_merging(0), batch, trace)
        tokens = counts(_tokens(batch, trace), trace.reductions)
        totals += torch.tensor(operations(model.encoder, tokens, model.plan))
        left += torch.stack(tokens).sum(1)
    return totals, left


@torch.inference_mode()
def _row(setting: Setting, model: Reducible, task: Task, seen: Seen) -> Row:
    totals, left = _work(task, model)
    count = sum(len(each.lines) for each in task.batches)
    largest = max(task.batches, key=lambda each: each.source.numel())
    return Row(
        **asdict(setting),
        per_second=statistics.median(seen.whole),
        encoded_per_second=statistics.median(seen.encoder),
        layer_gflops=(totals / count / 1e9).tolist(),
        layer_tokens=(left[1:] / count).tolist(),
        peak_memory_mb=peak_bytes(partial(task.encode, model, largest, None)) / 2**20,
        quality=statistics.mean(seen.quality),
    )


def _tokens(batch: Batch, trace: Trace) -> Tensor:
    """How many tokens each sentence or picture has (B,)."""
    if batch.source.dim() == 2:
        return (batch.source != PAD).sum(1)
    return torch.tensor([trace.reductions[0].source.shape[1]] * len(batch.source))


def what_pays(rows: Sequence[Row], tolerance: float) -> Row | None:
    """The fastest row that is about as good as the first, the untouched model, if it is clearly faster."""
    allowed = [
        row
        for row in rows
        if row.quality >= rows[0].quality - tolerance and "random" not in row.kind
    ]
    best = max(allowed, key=lambda row: row.per_second)
    return best if best.per_second >= FASTER * rows[0].per_second else None


def task_of(
    directory: Path,
    text: Text | None,
    data: Path | None,
    *,
    limit: int = 1000,
    batch: int = 64,
    beam: int = 1,
) -> Task:
    """The model of a directory and the head of its test set, or of a text to be translated."""
    recipe = recipe_of(directory, "translate", "classify", "images")
    if recipe.task == "translate":
        found = load(directory, "cpu")
        text = text or own_text(found, directory, lambda line: print(line, file=sys.stderr), data)
        return _translation(found, directory, text, limit, batch, beam)
    if text is not None:
        raise InputError(
            "--source is for models that translate; others have the test set of their recipe"
        )
    model: Any
    pairs: Sequence[IdPair]
    if recipe.task == "images":
        looking, corpus = load_pictures(directory, "cpu"), datasets.load(recipe.data, data)
        model, name = looking.model, next(iter(corpus.tests))
        pairs = looking.shown(corpus, name)
    else:
        _, pair, model = opened(directory, "classify")
        test = next(iter(corpora.load(recipe.data, data).tests.values()), None)
        if test is None:
            raise InputError(f"{directory}: the data of its recipe has no test set")
        name, encoded = test.name, encode(recipe, pair, test)
        pairs = [encoded[line] for line in fitting(encoded, recipe.data.max_length, test.name)]
    batches = [collate_of(recipe)(pairs, lines) for lines in _alike(pairs, limit, batch)]
    return Task(
        model,
        name,
        batches,
        "accuracy",
        answer=lambda model: [model(batch).argmax(-1) for batch in batches],
        quality=lambda guesses: _accuracy(guesses, batches),
        encode=lambda model, batch, trace: model(batch, trace),
        warm=lambda model: model(batches[-1]),
        decodes=False,
    )


def _alike(pairs: Sequence[IdPair], limit: int, size: int) -> list[list[int]]:
    """The first lines in batches of so many, those of like length together."""
    lines = sorted(range(min(limit, len(pairs))), key=lambda line: len(pairs[line][0]))
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def _accuracy(guesses: Sequence[Tensor], batches: Sequence[Batch]) -> float:
    right = sum(
        int((guess == batch.target_out).sum())
        for guess, batch in zip(guesses, batches, strict=True)
    )
    return 100 * right / sum(len(batch.lines) for batch in batches)


def _translation(
    translator: Translator, directory: Path, text: Text, limit: int, batch: int, beam: int
) -> Task:
    """Sources that the model takes as a whole: pieces of longer ones would be inputs of another kind."""
    if not text.references:
        raise InputError(
            "--reference is missing: without it nobody can tell what fewer tokens cost"
        )
    recipe, pair, device = translator.recipe, translator.tokenizers, translator.device
    encoded: list[IdPair] = [(pair.source.encode(source), []) for source in text.sources]
    fits = fitting(encoded, recipe.data.max_length, text.name)[:limit]
    sources, references = (
        [each[line] for line in fits] for each in (text.sources, text.references)
    )
    pairs = [encoded[line] for line in fits]
    if not isinstance(translator.model, Reducible):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that could merge or prune"
        )
    return Task(
        translator.model,
        text.name,
        [collate(pairs, lines) for lines in _alike(pairs, limit, batch)],
        "bleu",
        answer=lambda model: Translator(recipe, pair, model, device).translate(sources, beam=beam),
        quality=lambda outputs: score(outputs, references).bleu,
        encode=lambda model, batch, trace: model.encode(batch.source, trace),
        warm=lambda model: Translator(recipe, pair, model, device).translate(
            sources[:WARM], beam=beam
        ),
        decodes=True,
    )
