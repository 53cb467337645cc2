"""Jobs of many requests -> their answers, in a few threads: jobs that wait at the same time are answered together.

No job waits for others to arrive: while some are being answered others queue up, and these make the next batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from egocnn.show.serve.settings import MOST_QUICK

Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplainJob:
    """Molecules as lines of text, and how to explain them."""

    lines: tuple[str, ...] = ()  # SMILES, each with the name after it, if it has one
    first: int = 1  # number of the first line, for the message about a line that is no molecule
    explained: str | None = None  # the class to explain; None: the predicted one
    fidelity: bool = True
    picture: bool = True

    def portions(self, most: int) -> Iterator[ExplainJob]:
        """The same job in several, each of ``most`` lines or fewer."""
        for start in range(0, len(self.lines), most):
            yield replace(self, lines=self.lines[start : start + most], first=start + 1)

    @property
    def is_quick(self) -> bool:
        """Whether nothing in it is so long that others should not be made to wait for it."""
        return max(map(len, self.lines), default=0) <= MOST_QUICK

    def goes_with(self, other: ExplainJob) -> bool:
        """Whether both can be explained in one call."""
        return (self.explained, self.fidelity) == (other.explained, other.fidelity)


Deliver: TypeAlias = Callable[[ExplainJob, Any], None]  # Takes the answer to a job, or an exception.
Work: TypeAlias = Callable[[Sequence[ExplainJob], Deliver], None]
"""Answers every job of a batch, by calling the other function as soon as each answer is there."""

Waiting: TypeAlias = dict[ExplainJob, asyncio.Future[Any]]


class BatchQueue:
    """The queue in front of one model."""

    def __init__(self, work: Work, *, most: int = 64, threads: int = 1) -> None:
        """``most``: lines in a batch, so that the first answers of many do not take long; ``threads``: batches at a
        time"""
        self._work, self._most, self._most_tasks = work, most, threads
        self._waiting: Waiting = {}
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="explain")
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, job: ExplainJob) -> Any:
        """What the work delivers for the job; a caller that is cancelled loses its place in the queue."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[job] = future
        self._tasks = {task for task in self._tasks if not task.done()}
        if len(self._tasks) < self._most_tasks:
            self._tasks.add(loop.create_task(self._answer_all(loop)))
        return await future

    def close(self) -> None:
        """End the threads; jobs that wait are not answered any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer_all(self, loop: asyncio.AbstractEventLoop) -> None:
        while batch := self._next():
            await loop.run_in_executor(self._threads, self._answer, batch, loop)

    def _next(self) -> Waiting:
        """The first job that waits, and those behind it that can be answered with it, in their order."""
        self._waiting = {job: future for job, future in self._waiting.items() if not future.done()}  # not cancelled
        first = next(iter(self._waiting), None)
        batch: Waiting = {}
        lines = 0
        for job in list(self._waiting):
            fits = lines + len(job.lines) <= self._most
            if job is first or (first is not None and fits and first.goes_with(job)):
                batch[job] = self._waiting.pop(job)
                lines += len(job.lines)
        return batch

    def _answer(self, batch: Waiting, loop: asyncio.AbstractEventLoop) -> None:
        unanswered = dict(batch)

        def deliver(job: ExplainJob, answer: Any) -> None:
            loop.call_soon_threadsafe(_settle, unanswered.pop(job), answer)

        try:
            self._work(list(batch), deliver)
        except Exception as error:  # goes to everyone who still waits
            for job in list(unanswered):
                deliver(job, error)


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
