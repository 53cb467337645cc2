"""Questions of many requests -> answers, in one thread: those that wait meanwhile are answered together.

No question waits for company: while some are being answered others arrive, and these make the next batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from egocnn.data.graphs import Graphs

Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Molecules as lines of text, or graphs that have been read already."""

    lines: tuple[str, ...] = ()
    """SMILES, each with the name after it, if it has one"""
    first: int = 1
    """number of the first line, for what is said of a line that is no molecule"""
    graphs: Graphs | None = None
    explained: str | None = None
    """the class to explain; None: the predicted one"""
    fidelity: bool = True
    picture: bool = True

    def goes_with(self, other: Question) -> bool:
        """Whether both can be explained in one call: graphs of different files need not have the same columns."""
        both_typed = self.graphs is None and other.graphs is None
        return both_typed and (self.explained, self.fidelity) == (other.explained, other.fidelity)


Deliver: TypeAlias = Callable[[Question, list[Plain] | Exception], None]
Work: TypeAlias = Callable[[Sequence[Question], Deliver], None]
"""Answers every question of a batch, by calling the other function as soon as each answer is there."""


class Desk:
    """The queue in front of one model."""

    def __init__(self, work: Work, *, most: int = 64) -> None:
        """``most``: lines in a batch, so that the first answers of a crowd do not take long"""
        self._work, self._most = work, most
        self._waiting: deque[tuple[Question, asyncio.Future[list[Plain]]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._turn: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> list[Plain]:
        """One answer for each graph of the question; a caller that is cancelled loses its place in the queue."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Plain]] = loop.create_future()
        self._waiting.append((question, future))
        if self._turn is None or self._turn.done():
            self._turn = loop.create_task(self._serve(loop))
        return await future

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while batch := self._next():
            await loop.run_in_executor(self._thread, self._answer, batch, loop)

    def _next(self) -> dict[Question, asyncio.Future[list[Plain]]]:
        """The first that waits, and those behind it that can be answered with it, in their order."""
        batch: dict[Question, asyncio.Future[list[Plain]]] = {}
        kept: deque[tuple[Question, asyncio.Future[list[Plain]]]] = deque()
        lines = 0
        for question, future in self._waiting:
            if future.done():  # nobody waits for it any more
                continue
            first = next(iter(batch), None)
            fits = lines + len(question.lines) <= self._most
            if first is None or (fits and first.goes_with(question)):
                batch[question] = future
                lines += len(question.lines)
            else:
                kept.append((question, future))
        self._waiting = kept
        return batch

    def _answer(self, batch: dict[Question, asyncio.Future[list[Plain]]], loop: asyncio.AbstractEventLoop) -> None:
        open_questions = dict(batch)

        def deliver(question: Question, answer: list[Plain] | Exception) -> None:
            loop.call_soon_threadsafe(_settle, open_questions.pop(question), answer)

        try:
            self._work(list(batch), deliver)
        except Exception as error:  # everyone who still waits must hear of it
            for question in list(open_questions):
                deliver(question, error)


def _settle(future: asyncio.Future[list[Plain]], answer: list[Plain] | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
