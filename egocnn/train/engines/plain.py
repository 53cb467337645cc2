"""The plain engine: every batch is cut out, sent through the network and forgotten; in parts where memory is short.
Several networks take turns, epoch by epoch; none of them notices the others.

On a CPU several networks train side by side, on threads that share them. A small batch gains little from several
threads, networks everything: torch computes without holding Python's lock. As many networks as torch has threads
compute at a time, taking turns batch by batch, so that all end an epoch at about the same time. Each draws from a
generator of its own: the weights are the same, bit for bit, however many are trained at a time, and with one thread
those of the plain engine."""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools
from egocnn.nn.device import choose_device
from egocnn.nn.embed import PatchySan
from egocnn.nn.rows import drawing_from
from egocnn.train.engines.common import (
    STEEPEST,
    Member,
    Progress,
    copy_of,
    epoch_seed,
    is_lower,
    present_in,
    rate,
    reseeding,
)
from egocnn.train.engines.parts import GradientStep
from egocnn.train.history import SCORES, Epoch
from egocnn.train.metrics import evaluate, loss_and_score, loss_of, weight_of


class PlainEngine:
    """See :class:`egocnn.train.engines.common.Engine`."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        self.progress, self.config, self.device = progress, config, choose_device(config.device)
        # what several networks share is sent to the device once
        moved = {id(part): part.to(self.device) for member in members for part in (member.train, member.validation)}
        self.members = [replace(m, train=moved[id(m.train)], validation=moved[id(m.validation)]) for m in members]
        self.weights = [member.weights(config) for member in self.members]
        self._random = [self.generator() for _ in members]
        self._steps = [self._gradient_step(r) for r in range(len(members))]

    def generator(self) -> torch.Generator | None:
        """What a network draws from; None: torch's own, in turn with the others."""
        return None

    def _gradient_step(self, r: int) -> GradientStep:
        config, device = self.config, self.device  # not self: a cycle of references would outlive the training
        member, history, weights = self.members[r], self.progress[r].history, self.weights[r]

        def forward(chosen: Tensor) -> tuple[Tensor, Tensor]:
            return run_batch(member.network, member, chosen, len(history.epochs) + 1, config, device)

        weighted = partial(loss_of, weights=weights), partial(weight_of, weights=weights)
        return GradientStep(member.network, forward, *weighted, random=self._random[r])

    def train_epoch(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        several = ((r, self.steps(r, epoch)) for r in np.flatnonzero(alive).tolist())
        return {r: ended for r, steps in several for ended in steps if ended is not None}

    def steps(self, r: int, epoch: int) -> Iterator[Epoch | None]:
        """The epoch once it has ended, and after every batch before nothing. All random numbers follow from its
        number."""
        started, random, member = time.perf_counter(), self._random[r], self.members[r]
        with reseeding(random, self.device) as seed, drawing_from(random, member.network):
            seed(epoch_seed(member.seed, epoch))
            trained = yield from self.train(r, epoch)
            scores = dict(zip(SCORES, (*trained, *self.validate(r)), strict=True))
        last, seconds = self.progress[r].optimizer.param_groups[0]["lr"], time.perf_counter() - started
        yield Epoch(epoch=epoch, learning_rate=last, seconds=seconds, **scores)

    def train(self, r: int, epoch: int) -> Generator[None, None, tuple[float, float]]:
        """Every batch of the epoch once, computed as it is asked for; loss and score."""
        found = []
        for chosen in self.batches(r, epoch):
            found.append(self._steps[r].compute(chosen))
            self.update(r)
            yield
        return loss_and_score(found)

    def batches(self, r: int, epoch: int) -> Iterator[Tensor]:
        """All graphs in random order, cut into batches; learning rate and norms are set for each when it comes."""
        train = self.members[r].train
        order = torch.randperm(len(train), device="cpu", generator=self._random[r]).to(train.node_ptr.device)
        batches = torch.tensor_split(order, math.ceil(len(train) / self.config.batch_size))  # equal: no batch of one
        return (self._set(r, epoch - 1 + n / len(batches), chosen) for n, chosen in enumerate(batches))

    def _set(self, r: int, epochs: float, chosen: Tensor) -> Tensor:
        network, train, config = self.members[r].network, self.members[r].train, self.config
        for group in self.progress[r].optimizer.param_groups:
            group["lr"] = config.learning_rate * rate(epochs / config.epochs, config)
        nodes = int((train.node_ptr[chosen + 1] - train.node_ptr[chosen]).sum())
        network.train(nodes > 1)  # a single node has no spread for the norms to learn
        for norm in (network.pool_norm, network.norm):
            norm.train(network.training and len(chosen) > 1)  # nor has a single graph for those of the head
        return chosen

    def update(self, r: int) -> None:
        """One step of the optimiser along the gradients."""
        torch.nn.utils.clip_grad_norm_(self.members[r].network.parameters(), STEEPEST)
        self.progress[r].optimizer.step()

    def validate(self, r: int) -> tuple[float, float]:
        """Loss and score of the graphs that choose the best epoch."""
        member, monitor = self.members[r], self.progress[r].history.monitor
        return evaluate(member.network, member.validation, self.weights[r], monitor)

    def keep_best(self, improved: Bools) -> None:
        for r in np.flatnonzero(improved).tolist():
            self.progress[r].best = copy_of(self.progress[r].network)

    def update_progress(self) -> None:
        """Nothing to do: the networks and optimisers of the progress are those that were trained."""

    def finish(self) -> None:
        for progress in self.progress:
            progress.network.load_state_dict(progress.best)
            progress.network.eval()


def run_batch(
    network: nn.Module, member: Member, chosen: Tensor, epoch: int, config: TrainConfig, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Outputs and targets of the chosen graphs, some with nodes missing, by the member's network or a copy of it."""
    own, embed = member.network, member.network.embed
    there = present_in(member.train, chosen, member.seed, epoch, config)
    # what the batch leaves out costs nothing; a GPU computes all, and multiplies by 0
    left_out = there if device.type == "cpu" and not own.reads_absent else None
    batch = member.train.batch(chosen, left_out, embed.shape if isinstance(embed, PatchySan) else None)
    assert batch.target is not None
    presence = None if there is None or left_out is not None else there.to(batch.attributes.dtype)
    with torch.autocast("cuda", torch.bfloat16) if is_lower(config.precision, device) else nullcontext():
        outputs: Tensor = network(batch, presence).output
    return outputs.float(), batch.target


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
        self._pool = ThreadPoolExecutor(self._threads, "network", initializer=torch.set_num_threads, initargs=(1,))

    def generator(self) -> torch.Generator:
        return torch.Generator()

    def train_epoch(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        if self._threads == 1:  # in turn: what else the machine does is not to be disturbed
            return super().train_epoch(epoch, alive)
        started, ended, is_over = time.perf_counter(), dict[int, Epoch](), Event()
        waiting = SimpleQueue[tuple[int, Iterator[Epoch | None]]]()
        for r in np.flatnonzero(alive).tolist():
            waiting.put((r, self.steps(r, epoch)))

        def take_turns() -> None:
            """Compute the next batch of whoever has waited longest, and so on until nobody waits."""
            with suppress(Empty):
                while not is_over.is_set():
                    r, steps = waiting.get_nowait()
                    if (found := next(steps)) is None:
                        waiting.put((r, steps))
                    else:
                        ended[r] = found

        running = list[Future[None]]()
        try:
            running += [self._pool.submit(take_turns) for _ in range(min(self._threads, waiting.qsize()))]
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            is_over.set()  # also by Ctrl-C, which comes to this thread
            wait(running)
            torch.set_num_threads(self._threads)  # for threads to come, which follow the last that was set anywhere
        for each in running:
            each.result()
        seconds = (time.perf_counter() - started) / len(ended)
        return {r: replace(own, seconds=seconds) for r, own in ended.items()}

    def finish(self) -> None:
        self._pool.shutdown()
        super().finish()
