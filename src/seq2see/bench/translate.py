"""Speed, memory and BLEU of every way to translate with one model on this machine."""

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seq2see.bench.process import run_worker
from seq2see.bench.rounds import medians, percentile, rounds, turns
from seq2see.bench.translate_worker import Job, Measured, Setting
from seq2see.ct2.convert import convert, refuse
from seq2see.ct2.library import cores, library
from seq2see.ct2.parity import logged, sentences
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.scoring.tokenization import tokenization
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.text.history import History

SAMPLE = 100  # sentences translated one by one
AT_LEAST = 1.0  # seconds of measured throughput; a short text is translated repeatedly
FILL = 240  # sentences: logged or made-up ones are too few for a batch and are repeated
TOLERANCE = 0.3  # BLEU that a recommended setting may lose


@dataclass(frozen=True)
class Text:
    """Sentences to translate."""

    name: str
    sources: list[str]
    references: list[str]  # empty: BLEU is unknown


@dataclass(frozen=True)
class Row(Setting):
    """Medians over the rounds of one setting."""

    sentences_per_second: float  # the whole text in batches
    p50_ms: float  # latency, one sentence at a time
    p99_ms: float
    peak_memory_mb: float
    start_seconds: float  # from the start of the process to its first translation
    bleu: float | None


@dataclass(frozen=True)
class Failed(Setting):
    """A setting whose worker failed."""

    error: str


@dataclass(frozen=True)
class Recommended:
    """The rows to choose, and the rule that chose them."""

    rule: str
    throughput: Row | None  # None if every setting failed
    latency: Row | None


@dataclass(frozen=True)
class Frontier:
    """Result of `bench translate`."""

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
    """Measure every combination of engine, precision, beam, batch and threads in rounds.

    By default with one thread and with all.
    """
    for count in threads:
        if count > cores():
            raise InputError(
                f"--threads {count}: more than the {cores()} cores that this process may use"
            )
    translator = load(model, "cpu")
    text = _head(text or own_text(translator, model, say), limit)
    with tempfile.TemporaryDirectory() as folder:
        weights, left_out = convert_all(translator, model, Path(folder))
        if left_out:
            say(f"without ct2: {left_out}")
        jobs = [
            _job(setting, model, weights[setting.engine, setting.precision], text)
            for setting in settings(weights, beams, batches, threads or (1, cores()))
        ]
        measured, errors = in_turn(jobs, seconds, say)
    bleu, signature = _scores(measured, text, tokenization(translator.recipe.data.target))
    rows = [_row(setting, results, bleu.get(setting)) for setting, results in measured.items()]
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


def test_text(recipe: Recipe, model: Path, data: Path | None = None) -> Text:
    """Return the test set of a model's recipe; raises InputError if its corpus is not available."""
    corpus = corpora.load(recipe.data, data, History.load(model))
    test = next(iter(corpus.tests.values()), corpus.val)
    joined = recipe.data.join
    name = test.name if joined == 1 else f"{test.name}, {joined} joined"
    sources = [source for source, _ in test.pairs]
    references = [target for _, target in test.pairs]
    return Text(name, sources, references)


def own_text(
    translator: Translator, model: Path, say: Callable[[str], None], data: Path | None = None
) -> Text:
    """Return the recipe's test set if its corpus is available, else the text `export` uses."""
    try:
        return test_text(translator.recipe, model, data)
    except InputError as error:
        say(f"without the test set of the recipe: {error}")
    name = "log.jsonl, repeated"
    few = logged(model / "log.jsonl")
    if not few:
        # Translations of made-up text are too long, since little in it makes a model end.
        name = "made-up text, whose speeds are not those of real text"
        few = [translator.tokenizers.source.decode(ids) for ids in sentences(translator, [])[1]]
    return Text(name, list(itertools.islice(itertools.cycle(few), FILL)), [])


def _head(text: Text, limit: int) -> Text:
    sources = text.sources[:limit]
    if not any(map(str.strip, sources)):
        raise InputError(
            f"{text.name}: the first {len(sources)} lines are empty; there is nothing to translate"
        )
    return Text(text.name, sources, text.references[:limit])


def convert_all(
    translator: Translator, model: Path, folder: Path
) -> tuple[dict[tuple[str, str], Path], str | None]:
    """Return the directory of weights per engine and precision, and why CTranslate2 has none."""
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
    """Return every combination.

    CTranslate2 uses threads as parallel workers, for throughput, or inside one, for latency.
    """
    combinations = [
        Setting(engine, precision, beam, batch, workers, inside)
        for engine, precision in kinds
        for beam in beams
        for batch in batches
        for count in threads
        for workers, inside in ([(1, count)] if engine == "torch" else [(count, 1), (1, count)])
    ]
    return list(dict.fromkeys(combinations))


def _job(setting: Setting, model: Path, weights: Path, text: Text) -> Job:
    real = [source for source in text.sources if source.strip()]
    sample = real[:: max(1, len(real) // SAMPLE)][:SAMPLE]
    return Job(setting, str(model), str(weights), text.sources, sample, AT_LEAST)


def in_turn(
    jobs: Sequence[Job], seconds: float, say: Callable[[str], None]
) -> tuple[dict[Setting, list[Measured]], dict[Setting, str]]:
    """Run all jobs in rounds; return the results of each setting and the errors of those failed."""
    by_setting = {job.setting: job for job in jobs}
    places = {setting: place for place, setting in enumerate(by_setting, start=1)}
    measured: dict[Setting, list[Measured]] = {setting: [] for setting in by_setting}
    errors: dict[Setting, str] = {}
    for number, setting in turns([*by_setting], rounds(seconds), failed=errors):
        say(f"round {number} · {places[setting]} of {len(jobs)} · {setting}")
        try:
            measured[setting].append(run(by_setting[setting]))
        except WorkError as error:
            say(f"failed: {error}")
            errors[setting] = str(error)
            del measured[setting]
    return measured, errors


def run(job: Job) -> Measured:
    """Run a job in a worker process."""
    figures = run_worker(
        "seq2see.bench.translate_worker",
        asdict(replace(job, started=time.time())),
        {"OMP_NUM_THREADS": str(job.setting.threads)},
    )
    return Measured(**figures)


def _scores(
    measured: dict[Setting, list[Measured]], text: Text, tokenize: str
) -> tuple[dict[Setting, float], str | None]:
    """Return BLEU of each setting, and its signature; equal translations are scored once."""
    if not text.references:
        return {}, None
    # A vocabulary of words may hold line breaks; `evaluate` replaces them by spaces as well.
    outputs = {
        setting: tuple(" ".join(output.splitlines()) for output in results[0].outputs)
        for setting, results in measured.items()
    }
    scores = {lines: score(lines, text.references, tokenize) for lines in set(outputs.values())}
    signature = next((scored.signature for scored in scores.values()), None)
    return {setting: scores[lines].bleu for setting, lines in outputs.items()}, signature


def _row(setting: Setting, measured: Sequence[Measured], bleu: float | None) -> Row:
    by_round = [
        {
            "sentences_per_second": result.sentences_per_second,
            "p50_ms": percentile(result.latencies_ms, 50),
            "p99_ms": percentile(result.latencies_ms, 99),
            "peak_memory_mb": result.peak_memory_mb,
            "start_seconds": result.start_seconds,
        }
        for result in measured
    ]
    figures: dict[str, Any] = medians(by_round)
    return Row(**asdict(setting), **figures, bleu=bleu)


def recommend(rows: Sequence[Row]) -> Recommended:
    """Choose the fastest rows among those within TOLERANCE of the best BLEU."""
    best = max((row.bleu for row in rows if row.bleu is not None), default=None)
    if best is None:
        rule = "the fastest of all; BLEU is unknown without a reference, so quality is ignored"
    else:
        rule = f"the fastest of those at most {TOLERANCE} BLEU below the best, {best:.2f}"
    allowed = [row for row in rows if best is None or (row.bleu or 0.0) >= best - TOLERANCE]
    return Recommended(
        rule,
        throughput=max(allowed, key=lambda row: row.sentences_per_second, default=None),
        latency=min(allowed, key=lambda row: row.p50_ms, default=None),
    )
