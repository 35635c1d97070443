"""Job, clock, memory and result of every worker; standard library only.

A worker runs in the environment of its peer: `python X_train.py JOB.json`, and its last line of
output is the result as JSON. Special ids are those of seq2see.
"""

import json
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

BEGIN, END, PAD, UNKNOWN = range(4)
BETAS = (0.9, 0.98)  # of Adam, in every system that lets one choose
EPSILON = 1e-9
LEARNING_RATE = 1e-4  # does not affect speed
WARM_UP_SENTENCES = 32

Job = dict[str, Any]
Ids = list[int]
Update = list[list[tuple[Ids, Ids]]]  # batches of pairs, without <s> and </s>
Setting = dict[str, Any]
Translate = Callable[[Sequence[str], Setting], list[str]]


def job() -> Job:
    """Read the job that the driver wrote."""
    values: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return values


def updates(data: str) -> Iterator[Update]:
    """Yield the batches that all systems train on, one optimizer step after another.

    Read one by one (1 ms each), so that measured memory is the model's: together they take 25 MB.
    """
    with (Path(data) / "updates.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def target_tokens(update: Update) -> int:
    """Count target tokens, with </s> and without padding."""
    return sum(len(target) + 1 for batch in update for _, target in batch)


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process."""
    try:  # not getrusage: it inherits the driver's peak across exec
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]
    except (OSError, TypeError):
        scale = 1024 if sys.platform == "linux" else 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def versions(*names: str) -> dict[str, str]:
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in names}


def report(**figures: Any) -> None:
    """Print the result: the last line of a worker's output."""
    print(json.dumps(figures | {"peak_memory_mb": peak_memory_mb()}), flush=True)


class Meter:
    """Counts whole updates, after one to warm up, until the seconds or the data run out.

    Checks that each update has the target tokens of the shared batches, unless the system forms its
    own (`equal` is False).
    """

    def __init__(self, job: Job, equal: bool = True) -> None:
        self.seconds = job["seconds"]
        self.equal = equal
        self.expected = json.loads((Path(job["data"]) / "tokens.json").read_text(encoding="utf-8"))
        self.counted = 0
        self.tokens = 0
        self.began = 0.0
        self.spent = 0.0

    def update(self, tokens: int) -> bool:
        """Note the end of an update; return True once enough is measured."""
        now = time.perf_counter()
        expected = self.expected[self.counted]
        if self.equal and tokens != expected:
            raise ValueError(
                f"update {self.counted + 1} had {tokens} target tokens instead of {expected}"
            )
        if self.counted == 0:
            self.began = now
        else:
            self.tokens += tokens
            self.spent = now - self.began
        self.counted += 1
        return self.counted == len(self.expected) or (
            self.counted > 1 and self.spent >= self.seconds
        )

    def report(self, parameters: int, versions: dict[str, str], **more: Any) -> None:
        report(
            target_tokens=self.tokens,
            seconds=self.spent,
            updates=self.counted - 1,
            target_tokens_per_second=self.tokens / self.spent,
            parameters=parameters,
            versions=versions,
            **more,
        )


def translation(
    job: Job,
    translate: Translate,
    settings: Sequence[Setting],
    versions: dict[str, str],
    then: Setting | None = None,
    **more: Any,
) -> None:
    """Measure text in, text out: every setting once (`tune`), or the chosen one for some seconds.

    When tuning, the fastest setting is tried once more with the change `then`; trying it with all
    of them would take twice the time.
    """
    text = (Path(job["data"]) / "sources.txt").read_text(encoding="utf-8")
    sources = text.split("\n")[: job["sentences"]]
    if job["tune"]:
        tried = [_tried(translate, sources, setting) for setting in settings]
        changed = _fastest(tried) | (then or {})
        if changed not in settings:
            tried.append(_tried(translate, sources, changed))
        report(setting=_fastest(tried), tried=tried, sentences=len(sources), **more)
        return
    setting = job["setting"] or settings[0]
    translate(sources[:WARM_UP_SENTENCES], setting)
    passes = 0
    began = time.perf_counter()
    while not passes or time.perf_counter() - began < job["seconds"]:
        outputs = translate(sources, setting)
        passes += 1
    spent = time.perf_counter() - began
    Path(job["outputs"]).write_text(json.dumps(outputs, ensure_ascii=False), encoding="utf-8")
    report(
        sentences=passes * len(sources),
        seconds=spent,
        sentences_per_second=passes * len(sources) / spent,
        setting=setting,
        versions=versions,
        **more,
    )


def _tried(translate: Translate, sources: Sequence[str], setting: Setting) -> dict[str, Any]:
    translate(sources[:WARM_UP_SENTENCES], setting)
    began = time.perf_counter()
    translate(sources, setting)
    return {
        "setting": setting,
        "sentences_per_second": len(sources) / (time.perf_counter() - began),
    }


def _fastest(tried: Sequence[dict[str, Any]]) -> Setting:
    best: Setting = max(tried, key=lambda row: row["sentences_per_second"])["setting"]
    return best


def by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yield batches of lines, longest first, so that a batch holds little padding."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for start in range(0, len(order), size):
        yield order[start : start + size]
