"""Requests -> their answers from worker processes, which are killed and replaced when they hang or die. Every worker
has a thread of the server to itself; what queues up meanwhile and can be answered together makes its next batch.

Only JSON and bytes go between them: what has met hostile input is never unpickled. The server imports no torch here."""

import json
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.errors import EgoCNNError, MissingExtraError, RunError, rule
from egocnn.show.serve.limits import RefusedError
from egocnn.show.serve.settings import MOST_IN_BATCH, ExplainJob, Plain

if TYPE_CHECKING:
    from egocnn.show.serve.model import ServedModel

START_SECONDS = 300.0  # For a worker to load its model.
PAUSE = 1.0  # Seconds between attempts to replace a worker whose model cannot be loaded any more.
GRACE = 5.0  # Seconds after which a worker that should have been ended is ended by the system: the server may be gone.


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
        # not closed: a thread that still reads it would read the connection that gets its number next
        with suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as both_ways:
            both_ways.shutdown(socket.SHUT_RDWR)


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
            rule(not self._closed.is_set(), "the server is being stopped", RunError)
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


def serve_requests(
    connection: Connection, run: Path, *, device: str, threads: int, seconds: float, gigabytes: float
) -> None:
    """The whole life of a worker process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they reach the server too, which lets requests be finished
    import torch

    from egocnn.model import Model
    from egocnn.nn.device import choose_device
    from egocnn.show.serve.model import ServedModel

    torch.set_num_threads(threads)
    logging.getLogger("egocnn").setLevel(logging.ERROR)  # what is skipped stands in the answer
    try:
        model = ServedModel(predictor=Model.load(run), name=run.name, device=choose_device(device).type)
    except EgoCNNError as error:
        send(connection, {"error": str(error)})
        return
    torch.zeros(1, device=model.device)
    if model.reads_smiles:  # what libraries load when they are first used shall not count
        with suppress(Exception):
            list(model.answer([ExplainJob(lines=("C",))]))
    allowance = int(gigabytes * 1e9)
    limit_memory(allowance)
    answer_requests(connection, model, alarm=seconds + GRACE, most_growth=allowance // 2)


def answer_requests(
    connection: Connection, model: "ServedModel", *, alarm: float = 0.0, most_growth: int | None = None
) -> None:
    """Say what the model is, then answer one request after the other until the other side has gone. Once memory has run
    out, or has grown by ``most_growth`` bytes, the last message asks for a fresh process."""
    send(connection, {"about": model.about()})
    first = data_bytes()
    with suppress(EOFError, OSError):  # the server has gone
        while True:
            request, data = receive(connection)
            if alarm:  # a timer is a matter of a process's main thread
                signal.setitimer(signal.ITIMER_REAL, alarm)
            exhausted = _answer(connection, model, request, data)
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
            grown = most_growth is not None and data_bytes() - first > most_growth
            send(connection, {"done": True, "retire": exhausted or grown})


def _answer(connection: Connection, model: "ServedModel", request: Plain, data: bytes) -> bool:
    """Send an answer for each job of the request; whether memory ran out."""
    from egocnn.nn.device import is_out_of_memory

    jobs = [ExplainJob(**job | {"lines": tuple(job["lines"])}) for job in request["jobs"]]
    exhausted = False
    for job, answer in _answers(model, jobs, data):
        header: Plain = {"job": jobs.index(job)}
        if not isinstance(answer, Exception):
            send(connection, header, answer.encode())
            continue
        status, reason = 500, "".join(traceback.format_exception(answer))  # for the server's log, not for the sender
        if isinstance(answer, EgoCNNError):
            status, reason = 503 if isinstance(answer, MissingExtraError) else 422, str(answer)
        if isinstance(answer, MemoryError) or is_out_of_memory(answer):
            exhausted = True
            status, reason = 422, "this takes more memory than a request may; send less"
        send(connection, header | {"status": status, "error": reason})
    return exhausted


def _answers(model: "ServedModel", jobs: Sequence[ExplainJob], data: bytes) -> Iterator[tuple[ExplainJob, Any]]:
    """A text, or an exception, for every job; one that comes in between goes to everyone who still waits."""
    waiting = dict.fromkeys(jobs)
    try:
        for job, answer in model.answer(jobs, data):
            text = answer if isinstance(answer, str | Exception) else json.dumps(answer, allow_nan=False)
            del waiting[job]
            yield job, text
    except Exception as error:
        yield from ((job, error) for job in waiting)


def send(connection: Connection, header: Plain, data: bytes = b"") -> None:
    """One message: a line of JSON, then bytes as they are."""
    connection.send_bytes(json.dumps(header).encode() + b"\n" + data)


def receive(connection: Connection) -> tuple[Any, bytes]:
    """The next message; an EOFError or OSError where the other side has gone."""
    header, _, data = connection.recv_bytes().partition(b"\n")
    return json.loads(header), data


def data_bytes() -> int:
    """Memory of this process that is its own to write, as the system counts it for its limit; 0 where it does not."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except (OSError, IndexError):
        return 0
    import resource

    return pages * resource.getpagesize()


def limit_memory(allowance: int) -> None:
    """Let this process take so many bytes more than it has now; on systems without such a limit, as many as it can."""
    if taken := data_bytes():
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = taken + allowance
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
