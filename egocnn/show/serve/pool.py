"""Requests -> their answers from worker processes, which are killed and replaced when they hang or die.

Every call blocks the thread that makes it.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from queue import LifoQueue
from typing import Any

from egocnn.errors import RunError
from egocnn.show.serve.batching import Deliver, ExplainJob, Plain
from egocnn.show.serve.limits import RefusedError
from egocnn.show.serve.worker import receive, send

START_SECONDS = 300.0  # For a worker to load its model.
PAUSE = 1.0  # Seconds between attempts to replace a worker whose model cannot be loaded any more.


def _nothing() -> None: ...


class LostError(Exception):
    """A worker that was killed or died over a request; the message is for its sender."""


class Worker:
    """The server's end of the connection to one worker; ``end`` ends what is at the other, however busy it is."""

    def __init__(self, connection: Connection, end: Callable[[], None]) -> None:
        self._connection, self._end = connection, end

    def load(self) -> Plain:
        """What the model is, once it is loaded; a RunError where it cannot be."""
        try:
            if not self._connection.poll(START_SECONDS):
                raise RunError(f"the model was not loaded within {START_SECONDS:g} seconds")
            said, _ = receive(self._connection)
        except (EOFError, OSError):
            raise RunError("the process that loads the model ended; its log says why") from None
        if "error" in said:
            raise RunError(said["error"])
        about: Plain = said["about"]
        return about

    @property
    def is_alive(self) -> bool:
        """Whether a worker that nobody has asked is still there: it has nothing to say, but its end can be heard."""
        try:
            return not self._connection.poll(0)
        except OSError:
            return False

    def ask(self, request: Plain, data: bytes, seconds: float, take: Callable[[Any, bytes], None]) -> bool:
        """Hand every answer to ``take``; whether the worker can be asked again. A LostError past the deadline."""
        deadline = time.monotonic() + seconds
        try:
            send(self._connection, request, data)
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                said, answer = receive(self._connection)
                if "done" in said:
                    return not said["retire"]
                take(said, answer)
        except (EOFError, OSError):
            raise LostError("the process that worked on this ended over it; it is too much, or RDKit fails") from None
        raise LostError(f"this takes more than {seconds:g} seconds of work; send less, or a simpler molecule")

    def end(self) -> None:
        """End it, wherever it is."""
        self._end()
        self._connection.close()


def start_process(target: Callable[..., None], *arguments: Any, **named: Any) -> Worker:
    """A worker in a fresh process, where ``target`` gets the other end of the connection and these arguments."""
    # spawned, not forked: a fork copies locks that other threads hold
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), kwargs=named, daemon=True)
    process.start()
    theirs.close()

    def end() -> None:
        process.kill()
        process.join()

    return Worker(ours, end)


class WorkerPool:
    """Workers of one model, all alike; ``about`` is what the first of them says about it."""

    def __init__(self, launch: Callable[[], Worker], *, workers: int, seconds: float) -> None:
        """``seconds``: of work on a request, or on several that are answered together"""
        self._launch, self._seconds = launch, seconds
        self._idle: LifoQueue[Worker | None] = LifoQueue()
        self._workers: set[Worker] = set()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._slow = threading.Semaphore(max(1, workers - 1))
        first, *others = (self._launched() for _ in range(workers))
        try:
            self.about = first.load()
        except BaseException:
            self.close()
            raise
        self._idle.put(first)
        for worker in others:
            threading.Thread(target=self._replace, args=(worker,), daemon=True).start()

    def explain(self, jobs: Sequence[ExplainJob], deliver: Deliver) -> None:
        """Answer every job; where a worker is lost over several, each is tried alone, so that one spoils no other."""
        waiting = dict(enumerate(jobs))

        def take(said: Any, answer: bytes) -> None:
            deliver(waiting.pop(said["job"]), _error(said) or answer)

        try:
            self._ask({"jobs": [asdict(job) for job in jobs]}, b"", take)
        except LostError as lost:
            for job in waiting.values():
                if len(jobs) > 1:
                    self.explain([job], deliver)
                else:
                    deliver(job, RefusedError(422, str(lost)))

    def ask(self, request: Plain, data: bytes = b"") -> tuple[Plain, bytes]:
        """The one answer to a file, to a wish for a report, or to a job that may take long.

        One worker of several is left to ``explain``, also while one that was lost over such a request is replaced.
        """
        found: list[tuple[Plain, bytes]] = []
        self._slow.acquire()
        try:
            self._ask(request, data, lambda said, answer: found.append((said, answer)), self._slow.release)
        except LostError as lost:
            raise RefusedError(422, str(lost)) from None
        if error := _error(found[0][0]):
            raise error
        return found[0]

    def close(self) -> None:
        """End all workers, also those that hang; who waits for one is refused."""
        self._closed.set()
        with self._lock:
            for worker in self._workers:
                worker.end()
            self._workers.clear()
        self._idle.put(None)

    def _ask(
        self, request: Plain, data: bytes, take: Callable[[Any, bytes], None], then: Callable[[], None] = _nothing
    ) -> None:
        """``then`` is called once the worker, or one in its place, is free again."""
        stays, worker = False, self._free(then)
        try:
            stays = worker.ask(request, data, self._seconds, take)
        finally:
            if stays:
                self._idle.put(worker)
                then()
            else:
                self._end(worker)
                threading.Thread(target=self._replace, args=(None, then), daemon=True).start()

    def _free(self, then: Callable[[], None]) -> Worker:
        while (worker := self._idle.get()) is not None:
            if worker.is_alive:
                return worker
            self._end(worker)
            threading.Thread(target=self._replace, daemon=True).start()
        self._idle.put(None)  # for the next who waits
        then()
        raise RefusedError(503, "the server is being stopped")

    def _end(self, worker: Worker) -> None:
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
                worker.end()

    def _launched(self) -> Worker:
        with self._lock:
            if self._closed.is_set():
                raise RunError("the server is being stopped")
            worker = self._launch()
            self._workers.add(worker)
        return worker

    def _replace(self, worker: Worker | None = None, then: Callable[[], None] = _nothing) -> None:
        """Add a worker to those that are free once its model is loaded, be it after several attempts."""
        while not self._closed.is_set():
            try:
                worker = worker or self._launched()
                worker.load()
            except RunError as error:
                if worker is not None:
                    self._end(worker)
                worker = None
                if not self._closed.wait(PAUSE):
                    logging.getLogger("egocnn").error("a worker was not replaced: %s", error)
            else:
                self._idle.put(worker)
                break
        then()


def _error(said: Plain) -> Exception | None:
    """Why the worker gave no answer; None where it gave one."""
    if "error" not in said:
        return None
    return RuntimeError(said["error"]) if said["status"] == 500 else RefusedError(said["status"], said["error"])
