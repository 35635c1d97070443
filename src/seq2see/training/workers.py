"""Work shared out among threads that use one core each: two of them do more than one whose every product uses two."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def share_out(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> list[Result]:
    """The results in the order of the jobs; the cores that torch uses are divided among the workers."""
    if workers == 1 or len(jobs) <= 1:
        return [work(job) for job in jobs]
    threads = torch.get_num_threads()

    def alone(job: Job) -> Result:
        torch.set_num_threads(
            max(1, threads // workers)
        )  # each thread has its own number, so each must say it
        return work(job)

    try:
        return list(_pool(workers).map(alone, jobs))
    finally:
        torch.set_num_threads(threads)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="worker")
