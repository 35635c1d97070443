"""Worker processes that encode the shards of a store.

They are started as modules of their own: unlike those of `multiprocessing`, they neither import the
program that called nor inherit its memory.
"""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from seq2see.errors import WorkError
from seq2see.text.encode_worker import encode_shard
from seq2see.text.encoding import Encoder
from seq2see.text.lines import Pair

Job = tuple[int, list[Pair]]  # the number and the texts of a shard
MODULE = "seq2see.text.encode_worker"


class EncodePool:
    """As many workers as cores, or none for a single shard."""

    def __init__(self, folder: Path, run: Path, encoder: Encoder, kept: bool, shards: int) -> None:
        self.folder = folder
        self.encoder = encoder
        self.kept = kept
        self.count = min(shards, _cores()) if shards > 1 else 0
        settings = {"tokenizers": str(run.absolute()), "encoder": encoder.settings()}
        self.setup = {"folder": str(folder.absolute()), "kept": kept, **settings}
        self.workers: list[_Worker] = []

    def __enter__(self) -> Self:
        self.workers = [_Worker(self.setup) for _ in range(self.count)]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def map(self, jobs: Iterable[Job]) -> Iterator[dict[str, Any]]:
        """Encode and write shards; yield their entries of the index in order."""
        if not self.workers:
            for number, pairs in jobs:
                yield encode_shard(self.folder, number, pairs, self.encoder, self.kept)
            return
        free: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self.workers:
            free.put(worker)

        def run(job: Job) -> dict[str, Any]:
            worker = free.get()
            try:
                return worker.run(job)
            finally:
                free.put(worker)

        running: deque[Future[dict[str, Any]]] = deque()
        with ThreadPoolExecutor(self.count) as threads:
            try:
                for job in jobs:
                    running.append(threads.submit(run, job))
                    if len(running) > self.count:  # one waits for the next free worker
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            except BaseException:
                for worker in self.workers:
                    worker.process.kill()
                raise


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A process that answers each line with one line."""

    def __init__(self, setup: dict[str, Any]) -> None:
        # Like the command itself, the worker does not import from the working directory (-P).
        command = [sys.executable, "-P", "-m", MODULE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(setup)

    def run(self, job: Job) -> dict[str, Any]:
        number, pairs = job
        self._send({"shard": number, "pairs": pairs})
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            raise WorkError(f"a worker that encodes the training pairs ended with code {code}")
        entry: dict[str, Any] = json.loads(answer)
        if "error" in entry:
            raise WorkError(entry["error"])
        return entry

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the missing answer tells that the worker has ended
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def stop(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
