"""A run folder and its settings -> a server that answers requests until it is stopped."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from egocnn.errors import DataError, MissingExtraError
from egocnn.show.serve.settings import ServeConfig

BACKLOG = 1024
"""Connections that may wait to be taken."""


def serve(
    run_folder: Path, config: ServeConfig, *, device: str = "auto", ready: Callable[[str, str], None] | None = None
) -> None:
    """Serve a trained model until the process is stopped; ``ready`` gets the address and the name of the model."""
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
        from uvicorn.supervisors import Multiprocess
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "serve") from None
    from egocnn.nn.device import choose_device
    from egocnn.show.serve.app import ENVIRONMENT, from_environment
    from egocnn.show.serve.model import ServedModel

    model = ServedModel.load(run_folder)  # a run that cannot be read is refused here, once, in one line
    settings = {
        "run": str(run_folder.resolve()),
        "device": choose_device(device).type,
        "threads": max(1, (os.cpu_count() or 1) // config.workers),
    }
    os.environ[ENVIRONMENT] = json.dumps(settings | asdict(config))
    may_share = config.workers > 1 and hasattr(socket, "SO_REUSEPORT")
    listening = reserve(config) if may_share else listen(config)
    if ready is not None:
        host = f"[{config.host}]" if ":" in config.host else config.host
        ready(f"http://{host}:{listening.getsockname()[1]}", model.name)
    server = uvicorn.Config(
        f"{from_environment.__module__}:{from_environment.__name__}",
        factory=True,
        workers=config.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        ws="none",
    )
    with listening:
        if config.workers == 1:
            uvicorn.Server(server).run(sockets=[listening])
        else:
            Multiprocess(server, sockets=[listening]).run()


def listen(config: ServeConfig) -> socket.socket:
    """A listening socket; an address that cannot be had is refused in one line, and the port found for 0 is known."""
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, _, _, _, address = found[0]
        opened = _open(family, address)
    except OSError as error:
        reason = (error.strerror or "").partition(" (while")[0]  # Python repeats the address
        raise DataError(f"cannot listen on {config.host}, port {config.port}: {reason}") from None
    opened.set_inheritable(True)
    return opened


def _open(family: int, address: Any, *, shared: bool = False) -> socket.socket:
    opened = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=shared)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # for connections too: answers are sent at once
    return opened


class Reserved(socket.socket):
    """An address that nobody listens on yet; in every process that is given it, a listening socket of its own.

    Processes that share one listening socket take as many connections as they can get: one may get them all, while the
    other idles. Of several sockets with one address, the kernel chooses one at random.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(_open, shared=True), (self.family, self.getsockname())


def reserve(config: ServeConfig) -> Reserved:
    """The address of ``config`` for several processes."""
    with listen(config) as probe:  # who listens there already, even if willing to share, is not to be joined
        family, address = probe.family, probe.getsockname()
    reserved = Reserved(family, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(address)
    return reserved
