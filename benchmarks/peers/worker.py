"""What every worker shares: its job, its clock, its memory, and one JSON line at the end; the standard library alone.

A worker runs in its peer's own environment: `python X_train.py JOB.json`. Special ids are those of seq2see.
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
BETAS, EPSILON = (0.9, 0.98), 1e-9  # of Adam, in every system that lets one choose
LEARNING_RATE = 1e-4  # it changes no speed
WARM_UP_SENTENCES = 32

Job = dict[str, Any]
Ids = list[int]
Update = list[list[tuple[Ids, Ids]]]  # batches of pairs, without <s> and </s>
Setting = dict[str, Any]
Translate = Callable[[Sequence[str], Setting], list[str]]


def job() -> Job:
    """What the driver asks for."""
    found: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return found


def updates(data: str) -> Iterator[Update]:
    """The batches that all systems train on, one optimizer step after another.

    Each is read when its turn comes (1 ms), so that the memory is the model's: all of them take 25 MB.
    """
    with (Path(data) / "updates.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def target_tokens(update: Update) -> int:
    """Real target tokens, </s> included, padding not."""
    return sum(len(target) + 1 for batch in update for _, target in batch)


def peak_memory_mb() -> float:
    """The most memory this process has held."""
    try:  # getrusage would count the driver's too: it is kept across exec
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]
    except (OSError, TypeError):
        scale = 1024 if sys.platform == "linux" else 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def versions(*names: str) -> dict[str, str]:
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in names}


def report(**found: Any) -> None:
    """The last line of a worker's output."""
    print(json.dumps(found | {"peak_memory_mb": peak_memory_mb()}), flush=True)


class Meter:
    """Counts whole updates after a first one that warms up, until the seconds are over, or the data.

    Each update must have just as many target tokens as everybody's batches have: that proves them `equal`, which they
    are but for a system that makes its own.
    """

    def __init__(self, job: Job, equal: bool = True) -> None:
        self.seconds, self.equal = job["seconds"], equal
        self.expected = json.loads((Path(job["data"]) / "tokens.json").read_text(encoding="utf-8"))
        self.counted = self.tokens = 0
        self.began = self.spent = 0.0

    def update(self, tokens: int) -> bool:
        """To be called at the end of each update; true when enough is measured."""
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
    """Measure text in, text out: every setting once (`tune`), or the chosen one until the seconds are over.

    The fastest setting is tried once more with the change `then`, which on all of them would take twice the time.
    """
    sources = (
        (Path(job["data"]) / "sources.txt")
        .read_text(encoding="utf-8")
        .split("\n")[: job["sentences"]]
    )
    if job["tune"]:
        tried = [_tried(translate, sources, setting) for setting in settings]
        changed = _fastest(tried) | (then or {})
        if changed not in settings:
            tried.append(_tried(translate, sources, changed))
        report(setting=_fastest(tried), tried=tried, sentences=len(sources), **more)
        return
    setting = job["setting"] or settings[0]
    translate(sources[:WARM_UP_SENTENCES], setting)
    passes, began = 0, time.perf_counter()
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
    best: Setting = max(tried, key=lambda each: each["sentences_per_second"])["setting"]
    return best


def by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Lines in batches of so many, longest first, so that a batch holds little padding."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for start in range(0, len(order), size):
        yield order[start : start + size]
