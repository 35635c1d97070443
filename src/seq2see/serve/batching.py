"""Batching across requests: one queue per model, emptied by the engine's workers.

All state belongs to the event loop; only the engine's work is done in threads.
"""

import asyncio
import functools
import heapq
import itertools
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from seq2see.serve.metrics import Metrics
from seq2see.serve.problems import Problem, busy
from seq2see.serve.similar import around

Ids = list[int]

WINDOW = 256  # sentences from which those of similar length are chosen


class Work(Protocol):
    """Computation of one batch; sentences share one only if their works are equal."""

    def tokens(self, sentence: Any, /) -> int:
        """Length of a sentence, by which batches are formed."""
        ...

    def largest(self, tokens: int, /) -> int:
        """Maximum number of sentences in a batch whose longest has so many tokens."""
        ...

    def run(self, batch: list[Any], /) -> list[Any]:
        """Compute the results of a batch, in order; called in a thread."""
        ...


class Ticket:
    """The sentences of one call, whose results come in different batches."""

    def __init__(self, size: int, future: "asyncio.Future[list[Any]]") -> None:
        self.future = future
        self.results: list[Any] = [None] * size
        self.missing = size

    def fail(self, error: Exception) -> None:
        """End the call; its sentences leave the queue."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class Item:
    """A sentence in the queue."""

    work: Work
    sentence: Any
    tokens: int
    ticket: Ticket
    place: int  # in its ticket
    arrived: float


class Batcher:
    """Queue of one model, and the workers that empty it.

    Requests are served in turn: each item has a tag, and the lowest tag goes first. Tags of a
    request are consecutive from the tag served last, so a short request does not wait for a long
    one that came before it.
    """

    def __init__(self, name: str, workers: int, bound: int, metrics: Metrics) -> None:
        self.workers = workers
        self.bound = bound
        self._metrics = metrics
        self._sizes = metrics.batch_sentences.labels(name)
        self._length = metrics.queue.labels(name)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=f"engine-{name}")
        self._loop = asyncio.get_running_loop()
        self._queue: list[tuple[int, int, Item]] = []
        self._order = itertools.count()
        self._tag = 0
        self._running = 0
        self._called = False  # whether a call of `_dispatch` is under way
        self._rate = 1.0  # sentences per second, of late

    async def run(self, work: Work, sentences: Sequence[Any], ticket_made: Any = None) -> list[Any]:
        """Compute the results of all sentences, in order; refuse them if the queue is full."""
        if not sentences:
            return []
        if len(sentences) > self.bound:
            rule = f"at most {self.bound} are allowed"
            raise Problem(413, f"the text has {len(sentences)} sentences; {rule}")
        if len(self._queue) + len(sentences) > self.bound:
            self._dispatch()  # some may wait only for what arrives with them
        if len(self._queue) + len(sentences) > self.bound:
            raise busy(max(1, math.ceil(len(self._queue) / self._rate)))
        ticket = Ticket(len(sentences), self._loop.create_future())
        if ticket_made:
            ticket_made(ticket)
        now = time.perf_counter()
        for place, sentence in enumerate(sentences):
            item = Item(work, sentence, work.tokens(sentence), ticket, place, now)
            heapq.heappush(self._queue, (self._tag + place, next(self._order), item))
        self._length.set(len(self._queue))
        self._call_dispatch()
        try:
            return await ticket.future
        finally:
            if ticket.missing:
                self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        """Remove the sentences of a call that nobody waits for."""
        self._queue = [entry for entry in self._queue if entry[2].ticket is not ticket]
        heapq.heapify(self._queue)
        self._length.set(len(self._queue))

    def _call_dispatch(self) -> None:
        """Dispatch after the requests that arrived together, so that the first is not alone."""
        if not self._called:
            self._called = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._called = False
        while self._queue and self._running < self.workers:
            free = self.workers - self._running
            batch = self._batch(math.ceil(len(self._queue) / free))
            self._running += 1
            self._sizes.observe(len(batch))
            now = time.perf_counter()
            for item in batch:
                self._metrics.waiting.observe(now - item.arrived)
            work = batch[0].work
            sentences = [item.sentence for item in batch]
            future = self._loop.run_in_executor(self._pool, _run, work, sentences)
            future.add_done_callback(functools.partial(self._end, batch, now))
        self._length.set(len(self._queue))

    def _batch(self, share: int) -> list[Item]:
        """Take the item that is next and those most similar in length, up to `share` of them."""
        tag, _, first = self._queue[0]
        self._tag = tag
        window = [heapq.heappop(self._queue) for _ in range(min(WINDOW, len(self._queue)))]
        alike = [entry for entry in window if entry[2].work == first.work]
        alike.sort(key=lambda entry: entry[2].tokens)
        place = next(i for i, entry in enumerate(alike) if entry[2] is first)
        lengths = [entry[2].tokens for entry in alike]
        start, end = around(lengths, place, share, first.work.largest)
        chosen = {id(entry[2]) for entry in alike[start:end]}
        for entry in window:
            if id(entry[2]) not in chosen:
                heapq.heappush(self._queue, entry)
        return [entry[2] for entry in alike[start:end]]

    def _end(self, batch: list[Item], begun: float, done: "asyncio.Future[list[Any]]") -> None:
        self._running -= 1
        seconds = time.perf_counter() - begun
        self._metrics.engine.observe(seconds)
        self._rate += 0.2 * (self.workers * len(batch) / seconds - self._rate)
        for item, result in zip(batch, done.result(), strict=True):
            ticket = item.ticket
            if isinstance(result, Exception):
                ticket.fail(result)
            ticket.results[item.place] = result
            ticket.missing -= 1
            if not ticket.missing and not ticket.future.done():
                ticket.future.set_result(ticket.results)
        self._dispatch()


def _run(work: Work, sentences: list[Any]) -> list[Any]:
    """Compute a batch; if it fails, each sentence alone, so that one cannot fail the others."""
    try:
        return work.run(sentences)
    except Exception as error:
        if len(sentences) == 1:
            return [error]
        return [_run(work, [sentence])[0] for sentence in sentences]
