"""The queue of a model."""

import asyncio
from dataclasses import dataclass, field

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from seq2see.serve.batching import Batcher
from seq2see.serve.metrics import Metrics
from seq2see.serve.problems import Problem


@dataclass
class Doubling:
    """Work that remembers its batches."""

    most: int = 100  # sentences of a batch
    batches: list[list[int]] = field(default_factory=list)

    def tokens(self, sentence: int) -> int:
        return sentence

    def largest(self, tokens: int) -> int:
        return self.most

    def run(self, batch: list[int]) -> list[int]:
        self.batches.append(batch)
        return [2 * sentence for sentence in batch]


def test_requests_that_arrive_together_share_a_batch() -> None:
    work = Doubling()

    async def arrive() -> list[list[int]]:
        batcher = Batcher("toy", 1, 100, Metrics())
        calls = [batcher.run(work, [number]) for number in range(5)]
        return [*await asyncio.gather(*calls)]

    assert asyncio.run(arrive()) == [[0], [2], [4], [6], [8]]
    assert work.batches == [[0, 1, 2, 3, 4]]


def test_what_a_worker_could_begin_with_does_not_count_as_waiting() -> None:
    async def arrive(count: int) -> list[list[int] | BaseException]:
        batcher = Batcher("toy", 1, 2, Metrics())
        calls = [batcher.run(Doubling(most=1), [number]) for number in range(count)]
        return [*await asyncio.gather(*calls, return_exceptions=True)]

    *answered, refused = asyncio.run(arrive(4))  # one runs, two wait
    assert answered == [[0], [2], [4]]
    assert isinstance(refused, Problem) and refused.status == 503
