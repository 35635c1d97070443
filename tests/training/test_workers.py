"""Parallel jobs: results in order, cores divided among threads and given back."""

import threading

import pytest
import torch

from seq2see.training.workers import one_thread, share_out


def test_results_stand_in_the_order_of_the_jobs() -> None:
    assert share_out(lambda job: job * 10, [3, 1, 2], 2) == [30, 10, 20]
    assert share_out(lambda job: job * 10, [], 2) == []


def test_two_workers_work_at_the_same_time() -> None:
    barrier = threading.Barrier(2, timeout=20)
    assert sorted(share_out(lambda job: barrier.wait(), [0, 1], 2)) == [0, 1]


def test_one_worker_or_one_job_stays_in_its_own_thread_with_all_its_cores() -> None:
    here = threading.current_thread(), torch.get_num_threads()
    for jobs, workers in (([1, 2, 3], 1), ([1], 4)):
        places = share_out(
            lambda job: (threading.current_thread(), torch.get_num_threads()), jobs, workers
        )
        assert places == [here] * len(jobs)


@pytest.mark.parametrize(("threads", "workers", "each"), [(2, 2, 1), (4, 2, 2), (1, 2, 1)])
def test_cores_are_divided_and_given_back(threads: int, workers: int, each: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert share_out(lambda job: torch.get_num_threads(), [0, 1, 2, 3], workers) == [each] * 4
        assert torch.get_num_threads() == threads
        with pytest.raises(ZeroDivisionError):
            share_out(lambda job: 1 // job, [1, 0], workers)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_one_thread_is_for_a_while() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError), one_thread():
            assert torch.get_num_threads() == 1
            raise ValueError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
