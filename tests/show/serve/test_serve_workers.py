"""Workers: what waits is answered together, and who hangs, dies or grows is replaced, at no cost to others."""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.errors import RunError
from egocnn.show.serve.limits import RefusedError
from egocnn.show.serve.pool import LostError, Worker, WorkerPool, data_bytes, send, start_process
from egocnn.show.serve.server import build
from egocnn.show.serve.settings import ExplainJob, ServeConfig
from tests.show.serve.models import MOLECULES, asking, client, in_thread
from tests.show.serve.stubs import ABOUT, deaf, stub, until
from tests.show.serve.test_serve_answers import refusal

LONG = "C" * 400  # makes a line one that may take long


@contextmanager
def pool_of(
    launch: Callable[[], Worker] = lambda: start_process(stub), workers: int = 1, seconds: float = 600.0
) -> Iterator[tuple[WorkerPool, list[Worker]]]:
    """A pool of such workers, by default of stubs in processes, and all that it has ever started."""
    started: list[Worker] = []

    def note() -> Worker:
        started.append(launch())
        return started[-1]

    pool = WorkerPool(note, workers=workers, seconds=seconds)
    try:
        yield pool, started
    finally:
        pool.close()


def ask(pool: WorkerPool, line: str) -> int:
    """The process that answered."""
    found: list[dict[str, int]] = json.loads(pool.submit(ExplainJob(lines=(line,))).result(300))
    return found[0]["process"]


def test_a_worker_that_hangs_is_killed_and_replaced_and_its_request_refused(tmp_path: Path) -> None:
    with pool_of(seconds=0.2) as (pool, started):
        with pytest.raises(RefusedError, match=r"more than 0\.2 seconds of work") as refused:
            ask(pool, f"hang {tmp_path / 'mark'}")
        assert refused.value.status == 422

        def is_answered() -> bool:
            try:
                return ask(pool, "C") > 0
            except RefusedError:  # on a slow machine this deadline is short for anything
                return False

        until(is_answered)
        assert len(started) >= 2


def test_a_worker_that_dies_is_replaced_and_those_who_were_answered_with_it_are_answered() -> None:
    with pool_of() as (pool, _), ThreadPoolExecutor(3) as crowd:
        first, dead, last = [crowd.submit(ask, pool, line) for line in ("C", "die", "CC")]
        assert isinstance(refused := dead.exception(), RefusedError)
        assert refused.status == 422
        assert all(one.result() for one in (first, last))


def test_a_worker_that_died_while_nobody_asked_or_asks_to_be_replaced_costs_nobody_an_answer() -> None:
    with pool_of() as (pool, started):
        first = ask(pool, "leave")
        until(lambda: not started[0].is_alive)
        second = ask(pool, "retire")
        third = ask(pool, "C")
        assert ask(pool, "C") == third
    assert len({first, second, third}) == 3


def test_a_worker_that_was_ended_is_heard_by_nobody_and_leaves_its_connection_to_no_other() -> None:
    ours, theirs = Pipe()
    worker, number = Worker(ours, lambda: None), ours.fileno()
    worker.end()
    with pytest.raises(EOFError):
        theirs.recv_bytes()
    with pytest.raises(RunError, match="ended"):
        worker.load()
    with pytest.raises(LostError, match="ended"):
        list(worker.ask({"jobs": []}, b"", 1.0))
    assert not worker.is_alive
    assert number not in {end.fileno() for end in Pipe()}  # a thread may still be about to read it


def test_the_server_answers_whatever_its_workers_are_at(tmp_path: Path) -> None:
    with pool_of(workers=2) as (pool, _), ThreadPoolExecutor(2) as crowd:
        app: Any = build(pool, ServeConfig(seconds=600, waiting=2))
        with asking(app) as client:
            hung = []
            for mark in (tmp_path / "first", tmp_path / "second"):
                hung.append(crowd.submit(client.post, "/explain", json={"smiles": f"hang {mark}"}))
                until(mark.exists)
            assert client.get("/health").json() == {"status": "ok"}
            response = client.get("/model")
            assert "too many requests" in refusal(response, 503)
            assert response.headers["retry-after"] == "1"
            pool.close()
            for found in hung:
                assert "ended" in refusal(found.result())


def test_a_request_is_given_up_in_time_though_its_worker_hangs(tmp_path: Path) -> None:
    with pool_of() as (pool, _):
        app: Any = build(pool, ServeConfig(seconds=0.2))
        response = asking(app).post("/explain", json={"smiles": f"hang {tmp_path / 'mark'}"})
        assert "longer than 0.2 seconds" in refusal(response, 503)
        assert response.headers["retry-after"] == "1"


def test_long_smiles_leave_a_worker_free_for_others(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pool_of(workers=2) as (pool, _), ThreadPoolExecutor(3) as crowd:
        app: Any = build(pool, ServeConfig(seconds=600))
        with asking(app) as client:
            long = {"smiles": f"hang {mark} {LONG}"}
            hung = [crowd.submit(client.post, "/explain", json=long) for _ in range(3)]
            until(mark.exists)
            assert client.post("/explain", json={"smiles": "C"}).status_code == 200
            pool.close()
            assert {response.result().status_code for response in hung} <= {422, 503}


def test_while_a_worker_is_replaced_the_last_one_is_not_taken_by_what_may_take_long(tmp_path: Path) -> None:
    loading: list[Any] = []
    numbers = itertools.count(1)

    def launch() -> Worker:
        if next(numbers) != 3:
            return start_process(stub)
        ours, theirs = Pipe()
        loading.append(theirs)
        return Worker(ours, theirs.close)

    with pool_of(launch, workers=2) as (pool, _), ThreadPoolExecutor(1) as threads:
        with pytest.raises(RefusedError):
            ask(pool, f"die {LONG}")
        until(lambda: loading)
        hung = threads.submit(ask, pool, f"hang {tmp_path / 'mark'} {LONG}")
        assert all(ask(pool, "C") for _ in range(20))
        assert not (tmp_path / "mark").exists()
        pool.close()
        assert isinstance(hung.exception(), RefusedError)


def test_the_system_ends_a_worker_that_hangs_where_no_server_does() -> None:
    with pool_of(lambda: start_process(deaf)) as (pool, _), pytest.raises(RefusedError, match="ended over it"):
        ask(pool, "C")


def test_a_worker_that_has_grown_is_replaced_after_its_answer() -> None:
    model = SimpleNamespace(about=lambda: ABOUT, answer=lambda jobs, _: [(jobs[0], [{"process": 1}])])
    with pool_of(lambda: in_thread(model, most_growth=-(1 << 60))) as (pool, started):
        assert [ask(pool, "C") for _ in range(3)] == [1] * 3
        until(lambda: len(started) == 4)


def test_an_answer_that_json_cannot_hold_is_a_defect_for_which_nobody_waits() -> None:
    model = SimpleNamespace(about=lambda: ABOUT, answer=lambda jobs, _: [(jobs[0], [float("nan")])])
    with pool_of(lambda: in_thread(model)) as (pool, _), pytest.raises(RuntimeError, match="JSON compliant"):
        ask(pool, "C")


def test_what_takes_too_much_memory_is_refused_and_its_worker_replaced() -> None:
    asked: list[str] = []

    def answer(jobs: Any, _: bytes) -> Iterator[tuple[Any, Any]]:
        asked.extend(jobs[0].lines)
        if jobs[0].lines == ("big",):
            raise MemoryError
        yield jobs[0], [{"process": len(asked)}]

    with pool_of(lambda: in_thread(SimpleNamespace(about=lambda: ABOUT, answer=answer))) as (pool, started):
        assert ask(pool, "C") == 1
        with pytest.raises(RefusedError, match="more memory than a request may") as refused:
            ask(pool, "big")
        assert refused.value.status == 422
        assert ask(pool, "C") == 3
        assert len(started) == 2


@pytest.mark.skipif(data_bytes() == 0, reason="this system does not count the memory of a process")
def test_a_process_cannot_take_more_memory_than_it_was_allowed() -> None:
    script = """
from egocnn.show.serve.pool import limit_memory
limit_memory(100_000_000)
small = bytearray(10_000_000)
try:
    bytearray(500_000_000)
except MemoryError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_a_model_that_cannot_be_loaded_is_refused_and_a_replacement_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("egocnn.show.serve.pool.PAUSE", 0.0)
    numbers = itertools.count(1)

    def broken() -> Worker:
        ours, theirs = Pipe()
        send(theirs, {"error": "not a run folder"})
        return Worker(ours, lambda: None)

    with pytest.raises(RunError, match="not a run folder"):
        WorkerPool(broken, workers=1, seconds=1)
    with pool_of(lambda: broken() if next(numbers) in (2, 3) else start_process(stub)) as (pool, started):
        with pytest.raises(RefusedError):
            ask(pool, "die")
        assert ask(pool, "C")
        assert len(started) == 4
        pool.close()
        with pytest.raises(RefusedError, match="being stopped") as refused:
            ask(pool, "C")
        assert refused.value.status == 503


class Echo(Worker):
    """A worker that says the lines of every job back, once it is let."""

    def __init__(self, go: threading.Event) -> None:
        self.go, self.batches = go, list[list[Any]]()

    def load(self) -> dict[str, Any]:
        return {}

    @property
    def is_alive(self) -> bool:
        return True

    def ask(self, request: Any, *_: Any) -> Iterator[tuple[Any, bytes]]:
        self.batches.append(request["jobs"])
        self.go.wait(60)
        for number, job in enumerate(request["jobs"]):
            if job["lines"] == ("bad",):
                raise LostError("broken") if job["fidelity"] else ValueError("broken")
            yield {"job": number}, " ".join(job["lines"]).encode()
        yield {"done": True, "retire": False}, b""

    def end(self) -> None: ...


@contextmanager
def busy(jobs: Sequence[ExplainJob]) -> Iterator[tuple[Echo, threading.Event, list[Any]]]:
    """Jobs that arrive while another one is being answered, and what all of them get in the end."""
    go = threading.Event()
    echo = Echo(go)
    with pool_of(lambda: echo, seconds=1) as (pool, _):
        pool.submit(ExplainJob(lines=("first",)))
        until(lambda: echo.batches)
        yield echo, go, [pool.submit(job) for job in jobs]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
@settings(max_examples=30)
def test_everyone_gets_an_answer_of_their_own_however_many_come(sizes: list[int]) -> None:
    asked = [ExplainJob(lines=tuple(f"{i}.{j}" for j in range(size))) for i, size in enumerate(sizes)]
    with busy(asked) as (echo, go, futures):
        go.set()
        assert [future.result(60).decode().split() for future in futures] == [list(job.lines) for job in asked]
    batches = [[len(job["lines"]) for job in batch] for batch in echo.batches[1:]]
    assert sum(map(sum, batches)) == sum(sizes)
    assert all(sum(batch) <= 64 for batch in batches)


def test_what_waits_is_answered_together_and_different_wishes_apart() -> None:
    jobs = [ExplainJob(lines=("C",), explained=wish) for wish in ("a", "b", "a", None, "b")]
    with busy([*jobs, ExplainJob(lines=("C" * 400,))]) as (echo, go, futures):
        go.set()
        assert {future.result(60) for future in futures[:-1]} == {b"C"}
        assert len(futures[-1].result(60)) == 400
    batches = [[job["explained"] for job in batch] for batch in echo.batches[1:]]
    assert batches == [["a", "a"], ["b", "b"], [None], [None]]  # what is long goes alone


@pytest.mark.parametrize("lost", [True, False])
def test_one_who_has_gone_is_not_answered_and_a_failure_reaches_those_who_caused_it(lost: bool) -> None:
    jobs = [ExplainJob(lines=(text,), fidelity=lost) for text in ("gone", "good", "bad", "late")]
    with busy(jobs) as (echo, go, (gone, good, bad, late)):
        assert gone.cancel()
        go.set()
        assert good.result(60) == b"good"
        with pytest.raises(Exception, match="broken"):
            bad.result(60)
        if lost:  # tried again, each alone
            assert late.result(60) == b"late"
        else:
            assert isinstance(late.exception(60), ValueError)
        assert ("gone",) not in [job["lines"] for batch in echo.batches for job in batch]


def same(one: Any, other: Any) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if name in ("node_importance", "edge_importance"):
            np.testing.assert_allclose(value, other[name], rtol=1e-4, atol=1e-6)
        elif name in ("probability", "base", "for", "against", "output"):
            assert value == pytest.approx(other[name], rel=1e-4, abs=1e-5)
        elif name not in ("probabilities", "fidelity", "balance", "evidence", "svg"):
            assert value == other[name], name


def test_a_crowd_hears_what_each_would_hear_alone_and_mistakes_stay_with_who_made_them() -> None:
    asked = [*MOLECULES, "c1cc", *MOLECULES, "", "XX", *reversed(MOLECULES)]
    with client() as alone:
        wanted = [alone.post("/explain", json={"smiles": smiles}) for smiles in asked]
    with client() as shared, ThreadPoolExecutor(12) as crowd:
        found = list(crowd.map(lambda smiles: shared.post("/explain", json={"smiles": smiles}), asked))
    assert [response.status_code for response in found] == [response.status_code for response in wanted]
    assert sum(response.status_code == 422 for response in found) == 3
    for one, other in zip(found, wanted, strict=True):
        if one.status_code == 200:
            same(one.json()["answers"][0], other.json()["answers"][0])
        else:
            assert one.json() == other.json()
