"""A worker without a model, for tests of what becomes of workers: its lines say what it does.

It is imported by fresh processes, so nothing heavy stands here.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from egocnn.show.serve.pool import answer_requests, receive, send

ABOUT = {
    **{"name": "stub", "data": "", "task": "regression", "classes": [], "reads_smiles": True, "hydrogens": False},
    **{"node_labels": [], "edge_labels": [], "node_attributes": 0, "networks": 1, "parameters": 0},
}


def stub(connection: Connection, *_: Any, **__: Any) -> None:
    """``hang FILE`` hangs as native code does, deaf to signals, once FILE is there; ``wait FILE`` waits for FILE.done;
    ``die`` ends the process at once, ``leave`` after the answer, ``retire`` asks for that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    send(connection, {"about": ABOUT})
    while True:
        try:
            request = receive(connection)[0]
        except EOFError:
            return
        words = [line.split() for job in request["jobs"] for line in job["lines"]]
        for number, job in enumerate(request["jobs"]):
            for word, *files in (line.split() for line in job["lines"]):
                _act(word, files)
            send(connection, {"job": number}, b'[{"process": %d}]' % os.getpid())
        send(connection, {"done": True, "retire": ["retire"] in words})
        if ["leave"] in words:
            os._exit(0)


def deaf(connection: Connection) -> None:
    """A worker whose model hangs over everything; nobody but the system ends it."""

    def answer(*_: Any) -> None:
        threading.Event().wait()

    model: Any = SimpleNamespace(about=lambda: ABOUT, answer=answer)
    answer_requests(connection, model, alarm=0.1)


def _act(word: str, files: list[str]) -> None:
    if word == "die":
        os._exit(1)
    if word in ("hang", "wait"):
        Path(files[0]).touch()
    if word == "hang":
        threading.Event().wait()
    if word == "wait":
        until(Path(f"{files[0]}.done").exists)


def until(condition: Callable[[], Any]) -> None:
    """Wait until it holds; how long that takes is the machine's business, but not for ever."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.01)
