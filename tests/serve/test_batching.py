"""The queue of a model."""

import asyncio
from dataclasses import dataclass, field

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from seq2see.serve.batching import Batcher
from seq2see.serve.metrics import Metrics


@dataclass
class Doubling:
    """Work that remembers its batches."""

    batches: list[list[int]] = field(default_factory=list)

    def tokens(self, sentence: int) -> int:
        return sentence

    def largest(self, tokens: int) -> int:
        return 100

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
