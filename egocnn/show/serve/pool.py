"""Requests -> their answers from worker processes, which are killed and replaced when they hang or die. Every worker
has a thread of the server to itself; what queues up meanwhile and can be answered together makes its next batch."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from egocnn.errors import RunError
from egocnn.show.serve.limits import RefusedError
from egocnn.show.serve.settings import MOST_IN_BATCH, ExplainJob, Plain
from egocnn.show.serve.worker import receive, send

START_SECONDS = 300.0  # For a worker to load its model.
PAUSE = 1.0  # Seconds between attempts to replace a worker whose model cannot be loaded any more.


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
        return dict(said["about"])

    @property
    def is_alive(self) -> bool:
        """Whether a worker that nobody has asked is still there: it has nothing to say, but its end can be heard."""
        try:
            return not self._connection.poll(0)
        except OSError:
            return False

    def ask(self, request: Plain, data: bytes, seconds: float) -> Iterator[tuple[Any, bytes]]:
        """Every answer as it comes, until the worker says that it is done; a LostError past the deadline."""
        deadline = time.monotonic() + seconds
        try:
            send(self._connection, request, data)
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                yield receive(self._connection)
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


@dataclass(eq=False, slots=True)
class _Waiting:
    job: ExplainJob
    data: bytes
    is_alone: bool  # answered with no other
    future: Future[bytes] = field(default_factory=Future)

    def settle(self, answer: bytes | Exception) -> None:
        with suppress(InvalidStateError):  # whoever asked has gone
            if isinstance(answer, Exception):
                self.future.set_exception(answer)
            else:
                self.future.set_result(answer)


class WorkerPool:
    """Workers of one model, all alike; ``about`` is what the first of them says about it."""

    def __init__(self, launch: Callable[[], Worker], *, workers: int, seconds: float) -> None:
        """``seconds``: of work on a request, or on several that are answered together"""
        self._launch, self._seconds = launch, seconds
        self._waiting: list[_Waiting] = []
        self._workers: set[Worker] = set()
        self._changed, self._closed = threading.Condition(), threading.Event()
        self._lock = threading.Lock()  # of the workers: to start or end one takes longer than others may wait
        launched = [self._launched() for _ in range(workers)]  # all load at the same time
        try:
            self.about = launched[0].load()
        except BaseException:
            self.close()
            raise
        for number, worker in enumerate(launched):
            # of several workers the last is kept free for what is quick
            given = worker, number == 0, 0 < number == workers - 1
            threading.Thread(target=self._work, args=given, daemon=True).start()

    def submit(self, job: ExplainJob, data: bytes = b"") -> Future[bytes]:
        """What the worker sends, or why it does not; a future that is cancelled loses its place."""
        waiting = _Waiting(job, data, is_alone=not job.is_quick)
        with self._changed:
            if self._closed.is_set():
                waiting.settle(RefusedError(503, "the server is being stopped"))
            self._waiting.append(waiting)
            self._changed.notify_all()
        return waiting.future

    @property
    def waiting(self) -> int:
        """Requests that no worker has taken yet."""
        return len(self._waiting)

    def close(self) -> None:
        """End all workers, also those that hang; who waits for one is refused."""
        self._closed.set()
        with self._lock:
            for worker in self._workers:
                worker.end()
            self._workers.clear()
        with self._changed:
            for waiting in self._waiting:
                waiting.settle(RefusedError(503, "the server is being stopped"))
            self._changed.notify_all()

    def _work(self, given: Worker, is_loaded: bool, only_quick: bool) -> None:
        """The life of a thread: its worker answers what waits, and is replaced when it is lost."""
        worker = given if is_loaded else self._loaded(given)
        while worker is not None and (batch := self._next(worker, only_quick)) is not None:
            if not (batch and self._answer(worker, batch)):
                self._end(worker)
                worker = self._loaded(None)

    def _next(self, worker: Worker, only_quick: bool) -> list[_Waiting] | None:
        """The first that waits and those behind it that go with it; nothing where the worker has died meanwhile."""
        with self._changed:
            while not self._closed.is_set():
                self._waiting = [one for one in self._waiting if not one.future.done()]  # not cancelled
                first = next((one for one in self._waiting if one.job.is_quick or not only_quick), None)
                if first is None:
                    self._changed.wait()
                    continue
                if not worker.is_alive:
                    return []
                batch, room = [first], MOST_IN_BATCH - len(first.job.lines)
                others = [] if first.is_alone else [one for one in self._waiting if not one.is_alone]
                for one in others:
                    if one is not first and one.job.wishes == first.job.wishes and len(one.job.lines) <= room:
                        batch.append(one)
                        room -= len(one.job.lines)
                self._waiting = [one for one in self._waiting if one not in batch]
                return batch
        return None

    def _answer(self, worker: Worker, batch: list[_Waiting]) -> bool:
        """Settle the batch; whether the worker can be asked again. If it is lost over several, each is tried alone."""
        unanswered = dict(enumerate(batch))
        request = {"jobs": [asdict(one.job) for one in batch]}
        try:
            for said, answer in worker.ask(request, batch[0].data, self._seconds):
                if "done" in said:
                    return not said["retire"]
                found: bytes | Exception = answer
                if "error" in said:
                    why, status = said["error"], said["status"]
                    found = RuntimeError(why) if status == 500 else RefusedError(status, why)
                unanswered.pop(said["job"]).settle(found)
        except LostError as lost:
            with self._changed:
                for one in unanswered.values():
                    if len(batch) == 1 or self._closed.is_set():
                        one.settle(RefusedError(422, str(lost)))
                    one.is_alone = True
                self._waiting[:0] = unanswered.values()
                self._changed.notify_all()
        except Exception as error:  # goes to everyone who still waits
            for one in unanswered.values():
                one.settle(error)
        return False

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

    def _loaded(self, worker: Worker | None) -> Worker | None:
        """The worker, or a fresh one, once its model is loaded, be it after several attempts; None: all is over."""
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
                return worker
        return None
