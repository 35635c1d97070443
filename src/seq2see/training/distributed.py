"""Processes that train together: started by torchrun, found through its environment variables.

Rank 0 writes, prints, validates and keeps the time. The store, torchrun's own, carries what may
take long, such as waiting for a validation; the process group carries what every update needs.
"""

import json
import math
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import torch
from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from seq2see.errors import InputError, WorkError
from seq2see.training.environment import ranks

JOIN_SECONDS = 300.0  # for all processes to start
NOTICE_SECONDS = 2.0  # until a waiting process notices that another one has failed
SILENCE_SHARE = 0.1  # of the timeout: processes that still answer reach it within this time
LONGEST_SILENCE = 60.0


class World:
    """All processes of a run, and the place of this one; by default it is alone."""

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.restarts = 0  # of any process, by torchrun
        self.hosts = [socket.gethostname()]
        self.pids = [os.getpid()]  # of the processes on this host
        self.timeout = 0.0  # seconds
        self.turn = 0  # messages through the store so far
        self.store: Any = None

    @classmethod
    def join(cls) -> "World":
        """Join the processes that torchrun has started; without torchrun, be alone."""
        given = ranks(os.environ)
        if given is None:
            return cls()
        world = cls(*given)
        world.restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        if world.size > 1:
            world._meet()
        return world

    def _meet(self) -> None:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        try:
            joined = rendezvous("env://", timeout=timedelta(seconds=JOIN_SECONDS))
            self.store, _, _ = next(iter(joined))
        except (distributed.DistError, RuntimeError, ValueError) as error:
            raise WorkError(
                f"rank {self.rank}: cannot join at {address}: {_first(error)}"
            ) from None
        if not self.store_is_rank_0s:
            self.store = PrefixStore(self._attempt(), self.store)
        own = {"host": self.hosts[0], "pid": os.getpid(), "restarts": self.restarts}
        members = self.collect(own, JOIN_SECONDS)
        self.hosts = [member["host"] for member in members]
        self.pids = [member["pid"] for member in members if member["host"] == own["host"]]
        # Only the agents of some machines may count a restart.
        self.restarts = max(member["restarts"] for member in members)

    def _attempt(self) -> str:
        """Name this start of the processes: torchrun's store may hold what an earlier one has left.

        Rank 0 listens on a port as long as it lives, so the others can tell its name from an old
        one.
        """
        if self.main:
            self.listener = socket.create_server(("", 0), backlog=self.size)
            name = f"{self.listener.getsockname()[1]} {os.getpid()}"
            self.store.set("seq2see", name)
            return name
        until = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < until:
            name = str(self.store.get("seq2see").decode())
            address = (os.environ["MASTER_ADDR"], int(name.split()[0]))
            try:
                socket.create_connection(address, NOTICE_SECONDS).close()
                return name
            except OSError:
                time.sleep(0.1)
        raise WorkError(f"rank {self.rank}: rank 0 has not joined within {JOIN_SECONDS:.0f} s")

    @property
    def main(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def name(self, rank: int) -> str:
        return f"rank {rank} on {self.hosts[rank]}" if rank < len(self.hosts) else f"rank {rank}"

    def device(self, chosen: torch.device) -> torch.device:
        """The device of this process: with several GPUs on a machine, its own."""
        if self.size == 1 or chosen.type == "cpu":
            return chosen
        if chosen.type != "cuda":
            rule = "several processes need cpu or cuda"
            raise InputError(f"--device {chosen.type}: {rule}")
        if self.local_rank >= torch.cuda.device_count():
            gpus = f"{self.hosts[self.rank]} has {torch.cuda.device_count()} GPUs"
            rule = "start one process per GPU"
            raise InputError(f"LOCAL_RANK = {self.local_rank}: {gpus}; {rule}")
        torch.cuda.set_device(self.local_rank)
        return torch.device("cuda", self.local_rank)

    def connect(self, device: torch.device, timeout: float) -> None:
        """Open the connections for gradients; give up on a process silent for `timeout` seconds."""
        if self.size == 1:
            return
        self.timeout = timeout
        self.turn += 1
        backend = "gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl"
        distributed.init_process_group(
            backend,
            store=PrefixStore(f"group/{self.turn}", self.store),
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=timeout),
        )

    def leave(self) -> None:
        """Close the connections; failures can still be coordinated."""
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def gather(self, values: Sequence[float]) -> list[list[float]]:
        """The numbers of all processes, by rank: quick, and part of every update."""
        if self.size == 1:
            return [list(values)]
        own = torch.tensor(values, dtype=torch.float64)
        rows = [torch.empty_like(own) for _ in range(self.size)]
        distributed.all_gather(rows, own)
        return [row.tolist() for row in rows]

    def share(self, value: Any) -> Any:
        """Rank 0's JSON-serialisable value, however long the others have to wait for it."""
        if self.size == 1:
            return value
        self.turn += 1
        key = f"turn/{self.turn}"
        if self.main:
            self.store.set(key, json.dumps(value))
            return value
        self._wait(key)
        return json.loads(self.store.get(key))

    def collect(self, value: Any, seconds: float = math.inf) -> list[Any]:
        """The JSON-serialisable values of all processes, by rank, which may take their time."""
        if self.size == 1:
            return [value]
        self.turn += 1
        keys = [f"turn/{self.turn}/{rank}" for rank in range(self.size)]
        self.store.set(keys[self.rank], json.dumps(value))
        values = None
        if self.main:
            for rank, key in enumerate(keys):
                self._wait(key, seconds, self.name(rank))
            values = [json.loads(self.store.get(key)) for key in keys]
        gathered: list[Any] = self.share(values)
        return gathered

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Refuse to train if processes differ in a fact that has to be the same on all."""
        first, *others = self.collect(dict(facts))
        for rank, other in enumerate(others, start=1):
            for key, value in first.items():
                if other.get(key) != value:
                    differs = f"{self.name(rank)} has {key} = {other.get(key)!r}"
                    rule = f"{self.name(0)} has {value!r}; all processes need the same"
                    raise InputError(f"{differs}, and {rule}")

    def _wait(self, key: str, seconds: float = math.inf, expected: str = "") -> None:
        """Wait for a key, unless another process has failed meanwhile."""
        until = time.monotonic() + seconds
        while not self.store.check([key]):
            if self.store.check(["spoken"]):
                raise SystemExit(1)
            if time.monotonic() > until:
                raise WorkError(f"{expected} has not joined within {seconds:.0f} s")
            try:
                self.store.wait([key], timedelta(seconds=NOTICE_SECONDS))
            except distributed.DistStoreError:
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let one process alone say why all of them end."""
        if self.store is None:
            return
        if error is None:
            self.leave()
            self._say_goodbye()
        elif isinstance(error, (InputError, WorkError, KeyboardInterrupt)):
            self._end(error)
        elif is_broken_connection(error):
            self._end(WorkError(self._silent(str(error))))
        elif not isinstance(error, SystemExit):
            self._speak()  # with a traceback

    def _say_goodbye(self) -> None:
        """Let rank 0 end last if it keeps what the others read."""
        self.store.set(f"goodbye/{self.rank}", "")
        if self.main and self.store_is_rank_0s:
            for rank in range(self.size):
                self._wait(f"goodbye/{rank}", JOIN_SECONDS, self.name(rank))

    @property
    def store_is_rank_0s(self) -> bool:
        """Whether the store ends with rank 0; that of torchrun does not."""
        return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"

    def _end(self, error: BaseException) -> None:
        """Raise the error if this process is to report it; else end quietly."""
        code = 2 if isinstance(error, InputError) else 1
        if not self.main:
            time.sleep(NOTICE_SECONDS)  # a mistake that is the same on all ranks is rank 0's to say
        if not self._speak() or (isinstance(error, KeyboardInterrupt) and not self.main):
            raise SystemExit(code) from None
        if not self.main and not str(error).startswith("rank "):
            error = type(error)(f"{self.name(self.rank)}: {error}")
        raise error from None

    def _speak(self) -> bool:
        """Whether this process is the first to report that it has failed."""
        try:
            first = bool(self.store.add("spoken", 1) == 1)
        except (distributed.DistError, RuntimeError):
            return self.rank <= 1  # rank 0, which kept the store, is gone
        if self.main and self.store_is_rank_0s:
            time.sleep(1.5 * NOTICE_SECONDS)  # until the others know
        return first

    def _silent(self, problem: str) -> str:
        """Name the processes that do not answer: those that do all get here."""
        late = "imed out" in problem
        grace = min(SILENCE_SHARE * self.timeout, LONGEST_SILENCE) if late else NOTICE_SECONDS
        try:
            self.store.set(f"answers/{self.rank}", "")
            time.sleep(grace)
            keys = {rank: f"answers/{rank}" for rank in range(self.size)}
            gone = [rank for rank, key in keys.items() if not self.store.check([key])]
        except (distributed.DistError, RuntimeError):
            gone = [0]
            late = False
        if not gone:
            return f"the connection between the processes broke: {_first(problem)}"
        names = ", ".join(self.name(rank) for rank in gone)
        verb = "has" if len(gone) == 1 else "have"
        if late:
            return f"{names} {verb} not answered for {self.timeout:g} s; the checkpoints are kept"
        return f"{names} {verb} ended unexpectedly; the checkpoints are kept"


ALONE = World()


def is_broken_connection(error: BaseException) -> bool:
    """Whether PyTorch reports that another process is gone or silent."""
    if isinstance(error, distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and any(
        sign in str(error) for sign in ("gloo", "Gloo", "NCCL", "TCPStore")
    )


def _first(problem: object) -> str:
    return str(problem).splitlines()[0] if str(problem) else repr(problem)
