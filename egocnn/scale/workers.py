"""Rows of a file -> portions, parsed by several processes, in order and a few at a time."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager

from egocnn.data.rows import RowFile, RowPortion


@contextmanager
def worker_pool(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes that parse rows; None where one job does it all."""
    if jobs == 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")  # what torch has started in this process does not survive a fork
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for rows for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def parsed(file: RowFile, pool: ProcessPoolExecutor | None, ahead: int) -> Iterator[RowPortion]:
    """The portions of a file in order; ``ahead``: how many are parsed before they are asked for."""
    if pool is None:
        yield from map(file.reader, file.chunks)
        return
    waiting: deque[Future[RowPortion]] = deque()
    for chunk in file.chunks:
        waiting.append(pool.submit(file.reader, chunk))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
