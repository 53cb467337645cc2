"""A run folder and its settings -> a server that answers requests until it is stopped. The process that listens does
nothing but HTTP: it answers, and can be stopped, whatever its workers are at."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from egocnn.errors import DataError, MissingExtraError
from egocnn.show.serve.settings import ServeConfig

BACKLOG = 1024  # Connections that may wait to be taken.
FINISH_SECONDS = 10  # For requests being answered when the server is told to stop; then their workers are killed.


def serve(
    run_folder: Path, config: ServeConfig, *, device: str = "auto", ready: Callable[[str, str], None] | None = None
) -> None:
    """Serve a trained model until the process is stopped; ``ready`` gets the address and the name of the model."""
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "serve") from None
    from egocnn.show.serve.app import build
    from egocnn.show.serve.pool import WorkerPool, start_process
    from egocnn.show.serve.worker import serve_requests

    limits = {"seconds": config.work_seconds, "gigabytes": config.worker_gigabytes}
    threads = max(1, (os.cpu_count() or 1) // config.workers)
    folder = Path(os.path.realpath(run_folder))
    launch = partial(start_process, serve_requests, folder, device=device, threads=threads, **limits)
    with listen(config) as listening:
        pool = WorkerPool(launch, workers=config.workers, seconds=config.work_seconds)
        try:
            app: Any = build(pool, config)
            http: dict[str, Any] = {"http": guarded_protocol(config), "ws": "none", "server_header": False}
            log: dict[str, Any] = {"log_level": "warning", "access_log": False}
            server = uvicorn.Config(app, timeout_graceful_shutdown=FINISH_SECONDS, **http, **log)
            # uvicorn raises the signal once more when all is done: to be told to stop is no failure
            signal.signal(signal.SIGTERM, lambda *_: None)
            if ready is not None:
                host = f"[{config.host}]" if ":" in config.host else config.host
                ready(f"http://{host}:{listening.getsockname()[1]}", pool.about["name"])
            uvicorn.Server(server).run(sockets=[listening])
        finally:
            pool.close()


def guarded_protocol(config: ServeConfig) -> type[asyncio.Protocol]:
    """HTTP as uvicorn speaks it; connections beyond their number are closed, and those on which no headers arrive."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Guarded(H11Protocol):
        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > config.connections:
                transport.abort()
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.deadline is not None:
                self.deadline.cancel()

        def watch(self) -> None:
            """From the first byte of a request until its headers are whole."""
            is_waiting = self.cycle is None or self.cycle.response_complete
            if is_waiting and self.deadline is None:
                self.deadline = self.loop.call_later(config.receive_seconds, self.transport.close)
            elif not is_waiting and self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return Guarded


def listen(config: ServeConfig) -> socket.socket:
    """A listening socket; an address that cannot be had is refused in one line, and the port found for 0 is known."""
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, _, _, _, address = found[0]
        opened = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or "").partition(" (while")[0]  # Python repeats the address
        raise DataError(f"cannot listen on {config.host}, port {config.port}: {reason}") from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # for connections too: answers are sent at once
    return opened
