"""The plain engine for several networks on a CPU: they train side by side, each in a thread of its own. A small
batch gains little from several threads, networks everything: torch computes without holding Python's lock. As many
networks as torch has threads compute at a time, taking turns batch by batch, so that all end an epoch at about the same
time. Each draws from a generator of its own: the weights are the same, bit for bit, however many are trained at a time,
and with one thread those of the plain engine."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Condition

import numpy as np
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools
from egocnn.nn.device import choose_device
from egocnn.train.engines.common import Member, Progress
from egocnn.train.engines.plain import PlainEngine
from egocnn.train.history import Epoch

LARGE = 1 << 14
"""Nodes of a batch that keeps all threads busy; several such batches at a time would also take much memory."""


def gains_from_threads(members: Sequence[Member], config: TrainConfig) -> bool:
    """Whether networks should train side by side; how many threads there are does not count, as it changes no weight. A
    module in place of the node embedding may draw from the generator that all threads share."""
    if len(members) == 1 or choose_device(config.device).type != "cpu":
        return False
    averages = [int(each.train.node_ptr[-1]) / max(len(each.train), 1) for each in members]
    nodes = [size * min(config.batch_size, len(each.train)) for size, each in zip(averages, members, strict=True)]
    return max(nodes) <= LARGE and not any(each.network.custom_embedding for each in members)


class SideBySideEngine(PlainEngine):
    """See :class:`egocnn.train.engines.common.Engine`. All networks have an equal share of the seconds of an epoch."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        super().__init__(members, progress, config)
        self._threads = torch.get_num_threads()
        self._turns = Turns(self._threads)
        self._pool = ThreadPoolExecutor(len(members), "network", initializer=torch.set_num_threads, initargs=(1,))

    def generator(self) -> torch.Generator:
        return torch.Generator()

    def train_epoch(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        if self._threads == 1:  # in turn: what else the machine does is not to be disturbed
            return super().train_epoch(epoch, alive)
        started, running = time.perf_counter(), dict[int, Future[Epoch]]()
        try:
            for r in np.flatnonzero(alive).tolist():
                running[r] = self._pool.submit(self._train_or_stop, r, epoch)
            errors = [each.exception() for each in running.values()]
        except BaseException:  # Ctrl-C, which comes to this thread; no other is to run any more
            self._turns.stop()
            wait(running.values())
            raise
        finally:
            torch.set_num_threads(self._threads)  # for threads to come, which follow the last that was set anywhere
        for error in errors:
            if error is not None and not isinstance(error, Stopped):
                raise error
        seconds = (time.perf_counter() - started) / len(running)
        return {r: replace(each.result(), seconds=seconds) for r, each in running.items()}

    def _train_or_stop(self, r: int, epoch: int) -> Epoch:
        try:
            return self.train_and_validate(r, epoch)
        except BaseException:
            self._turns.stop()
            raise

    def batches(self, r: int, epoch: int) -> Iterator[Tensor]:
        """The plain engine's; whoever asks for the next one has computed the last."""
        for chosen in super().batches(r, epoch):
            with self._turns:
                yield chosen

    def validate(self, r: int) -> tuple[float, float]:
        with self._turns:
            return super().validate(r)

    def finish(self) -> None:
        self._turns.stop()  # Ctrl-C may have come before the threads were waited for
        self._pool.shutdown()
        super().finish()


class Stopped(Exception):  # noqa: N818 — no error of its own: another network's, or Ctrl-C
    """Training ends before this turn."""


class Turns:
    """A context that lets in so many threads at a time, in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._at_once, self._came, self._left = at_once, 0, 0
        self._changed, self._is_stopped = Condition(), False

    def __enter__(self) -> None:
        with self._changed:
            number = self._came
            self._came += 1
            self._changed.wait_for(lambda: self._is_stopped or number < self._left + self._at_once)
            if self._is_stopped:
                raise Stopped

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._left += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Let in nobody any more; those who wait and those to come are told by :class:`Stopped`."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
