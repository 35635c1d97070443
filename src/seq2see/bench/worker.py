"""One setting of a translation benchmark, measured in a process of its own: a job in by stdin, figures out by stdout.

In a process of its own, memory, start-up and threads are those of this setting alone, and CTranslate2 runs without
torch, as it does when it serves.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from seq2see.decoding import long_text as lines
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Setting:
    """How to translate: one row of the table."""

    engine: str  # torch or ct2
    precision: str
    beam: int
    batch: int  # source tokens of a batch, times the beam
    workers: int  # side by side, each on its own batch
    threads: int  # inside each

    def __str__(self) -> str:
        return (
            f"{self.engine} {self.precision} · beam {self.beam} · batch {self.batch} · "
            f"{self.workers} × {self.threads} thread{'s' * (self.threads > 1)}"
        )


@dataclass(frozen=True)
class Job:
    """What a worker is to do."""

    setting: Setting
    model: str  # the model directory: recipe and tokenizers, and torch's weights
    weights: str  # the same directory, or that of the converted model
    texts: list[str]
    sample: list[str]  # translated one by one
    seconds: float  # the texts are translated again until so many have passed
    started: float = (
        0.0  # when the process was, by the clock on the wall, which all processes share
    )


@dataclass(frozen=True)
class Measured:
    """What a worker found."""

    start_seconds: float  # from the start of the process to the first translated sentence
    latencies_ms: list[float]  # of each sentence of the sample
    sentences_per_second: float
    peak_memory_mb: float
    outputs: list[str]


def measure(job: Job) -> Measured:
    """Start, translate the sample one by one, then all the texts in batches."""
    translate = _ct2(job) if job.setting.engine == "ct2" else _torch(job)
    translate(job.sample[:1])
    start = time.time() - job.started
    latencies = []
    for text in job.sample:
        begun = time.perf_counter()
        translate([text])
        latencies.append(1000 * (time.perf_counter() - begun))
    passes, begun = 0, time.perf_counter()
    while not passes or time.perf_counter() - begun < job.seconds:
        outputs = translate(job.texts)
        passes += 1
    rate = passes * len(job.texts) / (time.perf_counter() - begun)
    return Measured(start, latencies, rate, _peak_memory_mb(), outputs)


def _torch(job: Job) -> Translate:
    import torch

    from seq2see.decoding.search import search
    from seq2see.tasks.table import load

    torch.set_num_threads(job.setting.threads)
    translator = load(job.model, "cpu")
    model, pair, limit = translator.model, translator.tokenizers, translator.recipe.data.max_length
    how = Search.of(translator.recipe, job.setting.beam)

    def find(sources: list[list[int]]) -> list[list[Hypothesis]]:
        return search(model, sources, how, batch_tokens=job.setting.batch)  # type: ignore[arg-type]

    return lambda texts: [
        best.text for best, *_ in lines.translate(texts, find, pair, limit, 1, _say_nothing)
    ]


def _ct2(job: Job) -> Translate:
    from seq2see.ct2 import engine as ct2

    model, setting = Path(job.model), job.setting
    shared = ct2.Setting(setting.workers, setting.threads, setting.batch)
    engine = ct2.Engine(
        Path(job.weights), Recipe.load(model / "recipe.toml"), tokenizers.load(model), shared
    )
    return lambda texts: [
        best.text for best, *_ in engine.search(texts, beam=setting.beam, warn=_say_nothing)
    ]


def _say_nothing(warning: str) -> None:
    """Long lines are cut, pass after pass; whoever gave them has not asked."""


def _peak_memory_mb() -> float:
    """The most memory this process has held at once."""
    try:
        # Not ru_maxrss: on Linux a new process inherits that of the one which started it, and ours has loaded torch.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return next(
            int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")
        )
    except (OSError, StopIteration):
        scale = 2**20 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main() -> None:
    """Read the job, print what was measured; a failure is the last line of stderr."""
    values = json.load(sys.stdin)
    job = Job(**values | {"setting": Setting(**values["setting"])})
    try:
        found = measure(job)
    except (InputError, WorkError) as error:
        sys.exit(str(error))
    json.dump(asdict(found), sys.stdout)


if __name__ == "__main__":
    main()
