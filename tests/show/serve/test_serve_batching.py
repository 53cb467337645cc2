"""Requests that arrive together: explained together, and answered as if each had come alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.show.serve.batching import BatchQueue, Deliver, ExplainJob
from tests.show.serve.models import MOLECULES, client

Found = TypeVar("Found")


def alone(crowd: Coroutine[Any, Any, Found]) -> Found:
    """Run it in a thread of its own: a browser that other tests have opened keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, crowd).result()


def echo(jobs: Sequence[ExplainJob], deliver: Deliver) -> None:
    for job in jobs:
        deliver(job, [{"line": line} for line in job.lines])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(1, 8))
@settings(max_examples=30)
def test_everyone_gets_an_answer_of_their_own_however_many_come(sizes: list[int], most: int) -> None:
    batches: list[int] = []

    def work(jobs: Sequence[ExplainJob], deliver: Deliver) -> None:
        batches.append(sum(len(job.lines) for job in jobs))
        assert len(jobs) == 1 or batches[-1] <= most
        echo(jobs, deliver)

    async def crowd() -> list[Any]:
        queue = BatchQueue(work, most=most)
        asked = [tuple(f"{i}.{j}" for j in range(size)) for i, size in enumerate(sizes)]
        answers = await asyncio.gather(*(queue.submit(ExplainJob(lines=lines)) for lines in asked))
        queue.close()
        return [(lines, [row["line"] for row in answer]) for lines, answer in zip(asked, answers, strict=True)]

    for lines, answer in alone(crowd()):
        assert list(lines) == answer
    assert sum(batches) == sum(sizes)


async def queued(queue: BatchQueue, go: threading.Event, *jobs: ExplainJob, cancelled: int | None = None) -> list[Any]:
    """Jobs that arrive while another one, called first, is being answered; what all of them get in the end."""
    first = asyncio.create_task(queue.submit(ExplainJob(lines=("first",))))
    await asyncio.sleep(0.05)
    rest = [asyncio.create_task(queue.submit(job)) for job in jobs]
    await asyncio.sleep(0.05)
    if cancelled is not None:
        rest.pop(cancelled).cancel()
    go.set()
    found = await asyncio.gather(first, *rest, return_exceptions=True)
    again = await queue.submit(ExplainJob())  # the queue is still open
    queue.close()
    return [*found, again]


def test_what_waits_is_answered_together_and_different_wishes_apart() -> None:
    batches: list[list[str | None]] = []
    go = threading.Event()

    def work(jobs: Sequence[ExplainJob], deliver: Deliver) -> None:
        go.wait(10)
        batches.append([job.explained for job in jobs])
        echo(jobs, deliver)

    jobs = [ExplainJob(lines=("C",), explained=wish) for wish in ("a", "b", "a", None, "b")]
    alone(queued(BatchQueue(work), go, *jobs))
    assert batches == [[None], ["a", "a"], ["b", "b"], [None], [None]]


def test_one_who_has_gone_is_not_answered_and_a_failure_reaches_all_who_wait() -> None:
    seen: list[str] = []
    go = threading.Event()

    def work(jobs: Sequence[ExplainJob], deliver: Deliver) -> None:
        go.wait(10)
        seen.extend(line for job in jobs for line in job.lines)
        if "bad" in seen:
            deliver(jobs[0], [{}])
            raise ValueError("broken")
        echo(jobs, deliver)

    jobs = [ExplainJob(lines=(text,)) for text in ("gone", "good", "bad", "late")]
    first, good, bad, late, again = alone(queued(BatchQueue(work), go, *jobs, cancelled=0))
    assert "gone" not in seen
    assert first == [{"line": "first"}]
    assert good == again == [{}]
    assert isinstance(bad, ValueError)
    assert isinstance(late, ValueError)


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
