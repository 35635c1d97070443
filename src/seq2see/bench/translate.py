"""The frontier of translating with one model on this machine: what each setting gives, and which to take."""

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seq2see.bench.worker import Job, Measured, Setting
from seq2see.ct2.convert import convert, refuse
from seq2see.ct2.engine import cores, library
from seq2see.ct2.parity import logged, sentences
from seq2see.errors import InputError, WorkError
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import corpora

SAMPLE = 100  # sentences translated one by one
AT_LEAST = 1.0  # seconds of measured throughput; a short text is translated again and again
FILL = 240  # sentences: the few of a log or made up are repeated, so that they fill a batch
TOLERANCE = 0.3  # BLEU that a recommended setting may lose


@dataclass(frozen=True)
class Text:
    """What is translated."""

    name: str
    sources: list[str]
    references: list[str]  # none: BLEU is unknown


@dataclass(frozen=True)
class Row(Setting):
    """A setting and the medians of what was measured."""

    sentences_per_second: float  # the whole text at once
    p50_ms: float  # one sentence at a time: half of them take at most so long
    p99_ms: float
    peak_memory_mb: float
    start_seconds: float  # from the start of the process to its first translation
    bleu: float | None


@dataclass(frozen=True)
class Failed(Setting):
    """A setting that could not be measured."""

    error: str


@dataclass(frozen=True)
class Recommended:
    """The rows to take, and by which rule."""

    rule: str
    throughput: Row | None  # none if nothing could be measured
    latency: Row | None


@dataclass(frozen=True)
class Frontier:
    """What `bench translate` found."""

    model: str
    text: str
    sentences: int
    rounds: int
    rows: list[Row]
    failed: list[Failed]
    left_out: str | None  # why there are no rows of CTranslate2
    recommended: Recommended
    signature: str | None  # of BLEU
    machine: dict[str, Any]


def bench_translate(
    model: Path,
    text: Text | None = None,
    *,
    beams: Sequence[int] = (1, 4),
    batches: Sequence[int] = (8192,),
    threads: Sequence[int] = (),
    limit: int = 1000,
    seconds: float = 300.0,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> Frontier:
    """Measure every engine, precision, beam, batch and number of threads, in turn, round after round.

    All settings are measured once, and again while another round fits into the seconds: what disturbs the machine
    for a while then disturbs one round of each, and medians do not show it. By default with one thread and with all.
    """
    for count in threads:
        if count > cores():
            raise InputError(
                f"--threads {count}: more than the {cores()} cores that this process may use"
            )
    translator = load(model, "cpu")
    text = _beginning(text or own_text(translator, model, say), limit)
    with tempfile.TemporaryDirectory() as folder:
        weights, left_out = convert_all(translator, model, Path(folder))
        if left_out:
            say(f"without ct2: {left_out}")
        wanted = settings(weights, beams, batches, threads or (1, cores()))
        jobs = [
            _job(setting, model, weights[setting.engine, setting.precision], text)
            for setting in wanted
        ]
        measured, errors = in_turn(jobs, seconds, say)
    bleu, signature = _scores(measured, text)
    rows = [_row(setting, found, bleu.get(setting)) for setting, found in measured.items()]
    return Frontier(
        model=str(model),
        text=text.name,
        sentences=len(text.sources),
        rounds=max(map(len, measured.values()), default=0),
        rows=rows,
        failed=[Failed(**asdict(setting), error=error) for setting, error in errors.items()],
        left_out=left_out,
        recommended=recommend(rows),
        signature=signature,
        machine=machine(),
    )


def own_text(
    translator: Translator, model: Path, say: Callable[[str], None], data: Path | None = None
) -> Text:
    """The test set of the recipe, where its corpus is at hand; otherwise what `export` calibrates with."""
    try:
        corpus = corpora.load(translator.recipe.data, data)
    except InputError as error:
        say(f"without the test set of the recipe: {error}")
    else:
        test = next(iter(corpus.tests.values()), corpus.val)
        joined = translator.recipe.data.join
        name = test.name if joined == 1 else f"{test.name}, {joined} joined"
        return Text(
            name, [source for source, _ in test.pairs], [target for _, target in test.pairs]
        )
    name, few = "log.jsonl, repeated", logged(model / "log.jsonl")
    if not few:
        # Its translations are longer than real ones, since little in it tells a model to end.
        name = "made-up text, whose speeds are not those of real text"
        few = [translator.tokenizers.source.decode(ids) for ids in sentences(translator, [])[1]]
    return Text(name, list(itertools.islice(itertools.cycle(few), FILL)), [])


def _beginning(text: Text, limit: int) -> Text:
    sources = text.sources[:limit]
    if not any(map(str.strip, sources)):
        raise InputError(
            f"{text.name}: the first {len(sources)} lines are empty; there is nothing to translate"
        )
    return Text(text.name, sources, text.references[:limit])


def convert_all(
    translator: Translator, model: Path, folder: Path
) -> tuple[dict[tuple[str, str], Path], str | None]:
    """Where the weights for each engine and precision are; and if CTranslate2 is not among them, why."""
    weights = {("torch", "float32"): model}
    try:
        library()
        refuse(translator.recipe, translator.tokenizers)
    except InputError as error:
        return weights, str(error)
    for precision in ("float32", "int8"):
        convert(translator, folder / precision, precision)
        weights["ct2", precision] = folder / precision
    return weights, None


def settings(
    kinds: Iterable[tuple[str, str]],
    beams: Iterable[int],
    batches: Iterable[int],
    threads: Sequence[int],
) -> list[Setting]:
    """Every combination; CTranslate2 takes threads as workers side by side, for throughput, or in one, for latency."""
    found = [
        Setting(engine, precision, beam, batch, workers, inside)
        for engine, precision in kinds
        for beam in beams
        for batch in batches
        for count in threads
        for workers, inside in ([(1, count)] if engine == "torch" else [(count, 1), (1, count)])
    ]
    return list(dict.fromkeys(found))


def _job(setting: Setting, model: Path, weights: Path, text: Text) -> Job:
    real = [source for source in text.sources if source.strip()]
    sample = real[:: max(1, len(real) // SAMPLE)][:SAMPLE]
    return Job(setting, str(model), str(weights), text.sources, sample, AT_LEAST)


def in_turn(
    jobs: Sequence[Job], seconds: float, say: Callable[[str], None]
) -> tuple[dict[Setting, list[Measured]], dict[Setting, str]]:
    """Run all jobs, and again as long as one more round fits into the seconds; one that fails is left out then."""
    measured: dict[Setting, list[Measured]] = {job.setting: [] for job in jobs}
    errors: dict[Setting, str] = {}
    begun, rounds = time.perf_counter(), 0
    while measured and (
        not rounds or (time.perf_counter() - begun) * (rounds + 1) / rounds <= seconds
    ):
        rounds += 1
        for place, job in enumerate(jobs, start=1):
            if job.setting in errors:
                continue
            say(f"round {rounds} · {place} of {len(jobs)} · {job.setting}")
            try:
                measured[job.setting].append(run(job))
            except WorkError as error:
                say(f"failed: {error}")
                errors[job.setting] = str(error)
                del measured[job.setting]
    return measured, errors


def run(job: Job) -> Measured:
    """Hand a job to a new process and wait for its figures."""
    # Like the command itself, the worker does not import from the working folder (-P).
    command = [sys.executable, "-P", "-m", "seq2see.bench.worker"]
    environment = os.environ | {"OMP_NUM_THREADS": str(job.setting.threads)}
    values = json.dumps(asdict(replace(job, started=time.time())))
    done = subprocess.run(command, input=values.encode(), capture_output=True, env=environment)
    if done.returncode:
        said = done.stderr.decode(errors="replace").split("\n")
        reason = next((line for line in reversed(said) if line.strip()), "it said nothing")
        raise WorkError(f"the worker ended with code {done.returncode}: {reason}")
    return Measured(**json.loads(done.stdout))


def _scores(
    measured: dict[Setting, list[Measured]], text: Text
) -> tuple[dict[Setting, float], str | None]:
    """BLEU of each setting, and its signature; many translate alike, and are scored once."""
    if not text.references:
        return {}, None
    # One line each, whatever line ends a vocabulary of words may hold, as `evaluate` scores them.
    outputs = {
        setting: tuple(" ".join(output.splitlines()) for output in found[0].outputs)
        for setting, found in measured.items()
    }
    scores = {each: score(each, text.references) for each in set(outputs.values())}
    signature = next((each.signature for each in scores.values()), None)
    return {setting: scores[each].bleu for setting, each in outputs.items()}, signature


def _row(setting: Setting, measured: Sequence[Measured], bleu: float | None) -> Row:
    median = statistics.median
    return Row(
        **asdict(setting),
        sentences_per_second=median(each.sentences_per_second for each in measured),
        p50_ms=median(percentile(each.latencies_ms, 50) for each in measured),
        p99_ms=median(percentile(each.latencies_ms, 99) for each in measured),
        peak_memory_mb=median(each.peak_memory_mb for each in measured),
        start_seconds=median(each.start_seconds for each in measured),
        bleu=bleu,
    )


def percentile(values: Sequence[float], share: int) -> float:
    """The least of the values that at least so many percent do not exceed."""
    return sorted(values)[math.ceil(len(values) * share / 100) - 1]


def recommend(rows: Sequence[Row]) -> Recommended:
    """The fastest rows, of those that translate about as well as the best."""
    best = max((row.bleu for row in rows if row.bleu is not None), default=None)
    if best is None:
        rule = "the fastest of all; without a reference BLEU is unknown, and quality is not weighed"
    else:
        rule = f"the fastest of those at most {TOLERANCE} BLEU below the best, {best:.2f}"
    allowed = [row for row in rows if best is None or (row.bleu or 0.0) >= best - TOLERANCE]
    return Recommended(
        rule,
        throughput=max(allowed, key=lambda row: row.sentences_per_second, default=None),
        latency=min(allowed, key=lambda row: row.p50_ms, default=None),
    )
