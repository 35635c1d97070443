"""The load of other processes: said once, taken back for good, unknown without a complaint."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest
import torch

from seq2see.training import machine
from seq2see.training.machine import Load, product_type


def test_some_devices_have_bfloat16() -> None:
    assert isinstance(machine.has_bfloat16(torch.device("cpu")), bool)
    assert not machine.has_bfloat16(torch.device("mps"))


@pytest.mark.parametrize("able", [True, False])
def test_bfloat16_is_used_where_the_processor_has_it(
    able: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "has_bfloat16", lambda device: able)
    cpu = torch.device("cpu")
    assert product_type("float32", cpu) == torch.float32
    assert product_type("bfloat16", cpu) == (torch.bfloat16 if able else torch.float32)


class Times(NamedTuple):
    """The fields that psutil reads on Linux."""

    user: float
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    steal: float = 0.0
    guest: float = 0.0


class Machine:
    """Two cores under a load that the test sets."""

    def __init__(self) -> None:
        self.now = self.own = self.others = self.idle = 0.0

    def run(self, seconds: float, own: float, others: float) -> None:
        self.now += seconds
        self.own += own * seconds
        self.others += others * seconds
        self.idle += (2 - own - others) * seconds


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()

    def times() -> Times:
        half = made.others / 2
        return Times(made.own + half, 0.0, made.idle, 5 * made.now, half, 9 * made.now)

    process = SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=made.own, system=0.0))
    monkeypatch.setattr(machine.psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(machine.psutil, "cpu_times", times)
    monkeypatch.setattr(machine.psutil, "Process", lambda pid: process)
    monkeypatch.setattr(machine.time, "monotonic", lambda: made.now)
    yield made


BUSY = "the machine is busy: other processes use 1.0 of 2 cores; training will be slower"
FREE = "the machine is free again: other processes use 0.0 of 2 cores"


def lines_under(loads: Iterable[float], two_cores: Machine) -> list[tuple[int, str]]:
    """Lines on a machine under these loads, ten seconds each, with the place of the load."""
    load = Load(threads=2)
    lines = []
    for place, others in enumerate(loads):
        for _ in range(10):
            two_cores.run(1.0, 1.0 - others / 2, others)
            lines.append((place, load.check()))
        assert load.others == pytest.approx(others, abs=1e-6)
    return [(place, line) for place, line in lines if line]


def test_a_busy_machine_is_said_once_and_taken_back_for_good(two_cores: Machine) -> None:
    loads = (0.1, 1.0, 1.1, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0)
    assert lines_under(loads, two_cores) == [(1, BUSY), (6, FREE), (12, BUSY)]


def test_a_load_that_comes_and_goes_is_said_ever_less_often(two_cores: Machine) -> None:
    loads = [float(place // 10 % 2) for place in range(500)]  # 100 seconds each, for 83 minutes
    said = [place for place, _ in lines_under(loads, two_cores)]
    assert said == [10, 21, 33, 47]


def test_a_core_that_training_would_not_use_is_no_loss(two_cores: Machine) -> None:
    load = Load(threads=1)
    two_cores.run(20.0, 1.0, 1.0)
    assert load.check() == "" and load.others == pytest.approx(1.0)


@pytest.mark.parametrize("error", [psutil.AccessDenied(), PermissionError("/proc/stat")])
def test_what_cannot_be_read_is_unknown(
    two_cores: Machine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    load = Load(threads=2)
    monkeypatch.setattr(machine.psutil, "cpu_times", fail)
    two_cores.run(20.0, 1.0, 1.0)
    assert (load.check(), load.check(), load.others) == ("", "", None)
    assert Load(threads=2).check() == ""


def test_this_machine_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "WINDOW_SECONDS", 0.0)
    load = Load(threads=1)
    load.check()
    assert load.others is not None and load.others >= 0
