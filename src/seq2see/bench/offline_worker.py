"""Offline translation in a process of its own: the rate that a server is held against."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from seq2see.ct2.engines import load
from seq2see.errors import InputError, WorkError


@dataclass(frozen=True)
class Job:
    """Input of the worker."""

    model: str
    texts: list[str]
    beam: int | None
    seconds: float  # the texts are translated repeatedly until this time has passed


@dataclass(frozen=True)
class Measured:
    """Output of the worker."""

    sentences_per_second: float
    outputs: list[str]


def measure(job: Job) -> Measured:
    """Translate all texts in one call, repeatedly; the first pass warms up."""
    translator = load(Path(job.model), "cpu")
    outputs = translator.translate(job.texts, beam=job.beam)
    passes = 0
    begun = time.perf_counter()
    while not passes or time.perf_counter() - begun < job.seconds:
        translator.translate(job.texts, beam=job.beam)
        passes += 1
    rate = passes * len(job.texts) / (time.perf_counter() - begun)
    return Measured(rate, outputs)


def main() -> None:
    """Read the job, print the figures; the last line of stderr names a failure."""
    try:
        measured = measure(Job(**json.load(sys.stdin)))
    except (InputError, WorkError) as error:
        sys.exit(str(error))
    json.dump(asdict(measured), sys.stdout)


if __name__ == "__main__":
    main()
