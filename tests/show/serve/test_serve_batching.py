"""Requests that arrive together: explained together, and answered as if each had come alone."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.show.serve.pool import LostError, Worker, WorkerPool
from egocnn.show.serve.settings import ExplainJob
from tests.show.serve.models import MOLECULES, client
from tests.show.serve.stubs import until


class Echo(Worker):
    """A worker that says the lines of every job back, once it is let."""

    def __init__(self, go: threading.Event) -> None:
        self.go, self.batches = go, list[list[Any]]()

    def load(self) -> dict[str, Any]:
        return {}

    @property
    def is_alive(self) -> bool:
        return True

    def ask(self, request: Any, *more: Any) -> bool:
        take: Callable[[Any, bytes], None] = more[-1]
        self.batches.append(request["jobs"])
        self.go.wait(60)
        for number, job in enumerate(request["jobs"]):
            if job["lines"] == ("bad",):
                raise LostError("broken") if job["fidelity"] else ValueError("broken")
            take({"job": number}, " ".join(job["lines"]).encode())
        return True

    def end(self) -> None: ...


@contextmanager
def busy(jobs: Sequence[ExplainJob]) -> Iterator[tuple[Echo, threading.Event, list[Any]]]:
    """Jobs that arrive while another one is being answered, and what all of them get in the end."""
    go = threading.Event()
    echo = Echo(go)
    pool = WorkerPool(lambda: echo, workers=1, seconds=1)
    pool.submit(ExplainJob(lines=("first",)))
    until(lambda: echo.batches)
    yield echo, go, [pool.submit(job) for job in jobs]
    pool.close()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
@settings(max_examples=30)
def test_everyone_gets_an_answer_of_their_own_however_many_come(sizes: list[int]) -> None:
    asked = [ExplainJob(lines=tuple(f"{i}.{j}" for j in range(size))) for i, size in enumerate(sizes)]
    with busy(asked) as (echo, go, futures):
        go.set()
        assert [future.result(60)[1].decode().split() for future in futures] == [list(job.lines) for job in asked]
    batches = [[len(job["lines"]) for job in batch] for batch in echo.batches[1:]]
    assert sum(map(sum, batches)) == sum(sizes)
    assert all(sum(batch) <= 64 for batch in batches)


def test_what_waits_is_answered_together_and_different_wishes_apart() -> None:
    jobs = [ExplainJob(lines=("C",), explained=wish) for wish in ("a", "b", "a", None, "b")]
    with busy([*jobs, ExplainJob(lines=("C" * 400,))]) as (echo, go, futures):
        go.set()
        assert {future.result(60)[1] for future in futures[:-1]} == {b"C"}
        assert len(futures[-1].result(60)[1]) == 400
    batches = [[job["explained"] for job in batch] for batch in echo.batches[1:]]
    assert batches == [["a", "a"], ["b", "b"], [None], [None]]  # what is long goes alone


@pytest.mark.parametrize("lost", [True, False])
def test_one_who_has_gone_is_not_answered_and_a_failure_reaches_those_who_caused_it(lost: bool) -> None:
    jobs = [ExplainJob(lines=(text,), fidelity=lost) for text in ("gone", "good", "bad", "late")]
    with busy(jobs) as (echo, go, (gone, good, bad, late)):
        assert gone.cancel()
        go.set()
        assert good.result(60)[1] == b"good"
        with pytest.raises(Exception, match="broken"):
            bad.result(60)
        if lost:  # tried again, each alone
            assert late.result(60)[1] == b"late"
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
