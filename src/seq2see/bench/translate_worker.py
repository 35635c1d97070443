"""One setting of a translation benchmark, measured in a process of its own.

Memory, start-up and threads are then those of this setting alone, and CTranslate2 runs without
torch, as it does when it serves.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seq2see.bench.memory import peak_resident_mb
from seq2see.decoding import long_text
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Setting:
    """Engine, precision, search and parallelism: one row of the table."""

    engine: str  # torch or ct2
    precision: str
    beam: int
    batch: int  # source tokens per batch, times the beam
    workers: int  # batches translated in parallel
    threads: int  # per worker

    def __str__(self) -> str:
        return (
            f"{self.engine} {self.precision} · beam {self.beam} · batch {self.batch} · "
            f"{self.workers} × {self.threads} thread{'s' * (self.threads > 1)}"
        )


@dataclass(frozen=True)
class Job:
    """Input of a worker."""

    setting: Setting
    model: str  # the model directory: recipe and tokenizers, and torch's weights
    weights: str  # the same directory, or that of the converted model
    texts: list[str]
    sample: list[str]  # translated one by one
    seconds: float  # the texts are translated repeatedly until this time has passed
    started: float = 0.0  # wall-clock time (time.time) at which the process was started


@dataclass(frozen=True)
class Measured:
    """Output of a worker."""

    start_seconds: float  # from the start of the process to the first translated sentence
    latencies_ms: list[float]  # one per sentence of the sample
    sentences_per_second: float
    peak_memory_mb: float
    outputs: list[str]


def measure(job: Job) -> Measured:
    """Start, translate the sample one by one, then all texts in batches."""
    translate = _ct2(job) if job.setting.engine == "ct2" else _torch(job)
    translate(job.sample[:1])
    start = time.time() - job.started
    latencies = []
    for text in job.sample:
        begun = time.perf_counter()
        translate([text])
        latencies.append(1000 * (time.perf_counter() - begun))
    passes = 0
    begun = time.perf_counter()
    while not passes or time.perf_counter() - begun < job.seconds:
        outputs = translate(job.texts)
        passes += 1
    rate = passes * len(job.texts) / (time.perf_counter() - begun)
    return Measured(start, latencies, rate, peak_resident_mb(), outputs)


def _torch(job: Job) -> Translate:
    import torch

    from seq2see.decoding.search import search
    from seq2see.tasks.table import load

    torch.set_num_threads(job.setting.threads)
    translator = load(job.model, "cpu")
    model: Any = translator.model
    pair = translator.tokenizers
    limit = translator.recipe.data.max_length
    config = Search.of(translator.recipe, job.setting.beam)

    def decode(sources: list[list[int]]) -> list[list[Hypothesis]]:
        return search(model, sources, config, batch_tokens=job.setting.batch)

    return lambda texts: [
        best.text for best, *_ in long_text.translate(texts, decode, pair, limit, 1, _ignore)
    ]


def _ct2(job: Job) -> Translate:
    from seq2see.ct2 import batches
    from seq2see.ct2.engine import Engine

    model = Path(job.model)
    setting = job.setting
    shared = batches.Setting(setting.workers, setting.threads, setting.batch)
    engine = Engine(
        Path(job.weights), Recipe.load(model / "recipe.toml"), tokenizers.load(model), shared
    )
    return lambda texts: [
        best.text for best, *_ in engine.search(texts, beam=setting.beam, warn=_ignore)
    ]


def _ignore(warning: str) -> None:
    """Drop a warning about a long line: it would repeat in every pass."""


def main() -> None:
    """Read the job, print the figures; the last line of stderr names a failure."""
    values = json.load(sys.stdin)
    job = Job(**values | {"setting": Setting(**values["setting"])})
    try:
        measured = measure(job)
    except (InputError, WorkError) as error:
        sys.exit(str(error))
    json.dump(asdict(measured), sys.stdout)


if __name__ == "__main__":
    main()
