"""Requests over a connection -> answers, in a process of its own, which is ended and replaced when it hangs. Only JSON
and bytes go over it: what has met hostile input is never unpickled. The server imports this file, without torch."""

import json
import logging
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.errors import EgoCNNError, MissingExtraError
from egocnn.show.serve.settings import ExplainJob, Plain

if TYPE_CHECKING:
    from egocnn.show.serve.model import ServedModel

GRACE = 5.0  # Seconds after which a worker that should have been ended is ended by the system: the server may be gone.


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
