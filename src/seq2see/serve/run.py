"""The server process: its socket, its signals and its end."""

import asyncio
import contextlib
import gc
import resource
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from seq2see.errors import WorkError
from seq2see.serve import detect, logs
from seq2see.serve.app import build
from seq2see.serve.gate import Gate
from seq2see.serve.hosts import Hosts, is_loopback
from seq2see.serve.logs import log
from seq2see.serve.models import Models
from seq2see.serve.protocol import Connection
from seq2see.serve.settings import Limits

BACKLOG = 2048  # connections that the kernel takes before we do
LINGER = 0.5  # seconds in which requests on open connections are still answered
KEEP_ALIVE = 30  # seconds that a connection may be idle
FILES = 1024  # that may be open beside connections
# New objects before a garbage collection. The requests under way have more than Python's default of
# 700, so it would run for every few of them; what is garbage is mostly connections that have ended.
YOUNG = 5000


class Server(uvicorn.Server):
    """Ends with 0 on SIGTERM after all accepted requests; reloads the models on SIGHUP."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, models: Models, gate: Gate
    ) -> None:
        super().__init__(config)
        self._listener = listener
        self._models = models
        self._gate = gate
        self._reload = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        yield

    def _stop(self) -> None:
        log("draining")
        self._gate.draining = True
        self.force_exit = self.should_exit  # a second signal does not wait
        self.should_exit = True

    def _hang_up(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload_models())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload_models(self) -> None:
        async with self._reload:
            await self._models.reload()
            set_aside()

    async def shutdown(self, sockets: Any = None) -> None:
        for server in self.servers:
            server.close()
        await self._accept_last()
        # A request may be on its way on an open connection; it is answered, and told to close.
        if not self.force_exit:
            await asyncio.sleep(LINGER)
        await super().shutdown(sockets)
        log("stopped")

    async def _accept_last(self) -> None:
        """Take the connections that the kernel has taken already: closing would reset them."""
        loop = asyncio.get_running_loop()
        self._listener.listen(0)
        last: list[socket.socket] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                last.append(self._listener.accept()[0])
        self._listener.close()
        for connection in last:
            connection.setblocking(False)
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state={}
        )
        return protocol


def bind(host: str, port: int) -> socket.socket:
    """Take the address, before the models are opened; nothing is accepted yet."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise WorkError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.setblocking(False)
    return listener


def allow_files(count: int) -> None:
    """Allow so many open files, as far as the hard limit goes."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        count = min(count, most)
    if allowed != resource.RLIM_INFINITY and allowed < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))


def set_aside() -> None:
    """Exempt all objects from further garbage collections: modules, routes and models stay."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def run(models: Models, host: str, port: int) -> None:
    """Open the models and serve until a signal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there are models to reload
    logs.take_over()
    settings = models.settings
    listener = bind(host, port)
    local = is_loopback(listener.getsockname()[0])
    if not local and settings.token is None:
        log("open", "warning", host=host, reason="reachable from elsewhere without a token")
    opened = models.open()
    detect.load()
    limits = settings.limits
    allow_files(limits.connections + FILES)
    answered = Hosts([host, *settings.hosts] if local or settings.hosts else [])
    application, gate = build(models, answered)
    config = configure(application, limits)
    gc.set_threshold(YOUNG)

    async def serve() -> None:
        models.serve(opened)
        set_aside()
        listener.listen(BACKLOG)
        server = Server(config, listener.dup(), models, gate)
        log("listening", host=host, port=listener.getsockname()[1])
        await server.serve([listener])

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(serve())


def configure(application: Any, limits: Limits) -> uvicorn.Config:
    """Return the settings of uvicorn."""
    protocol = type("BoundedConnection", (Connection,), {"limits": limits})
    return uvicorn.Config(
        application,
        loop="uvloop",
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.body_seconds + limits.deadline + limits.send_seconds),
        backlog=BACKLOG,
    )
