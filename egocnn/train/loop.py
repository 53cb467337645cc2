"""The one training loop: R networks and the graphs of each -> the networks with their best weights, and R histories.

Every random choice of epoch e follows from (seed, e) alone. A training that is killed and resumed from its last
checkpoint therefore ends with the same weights as an unbroken one.

Epochs are computed by one of three engines: plain (on a CPU several networks side by side, a thread for each), recorded
(all networks as one stack, on a GPU in steps that are recorded and replayed), or distributed over the processes of a
group. Where the memory does not suffice, less is computed at a time, with the same result. Recorded, half as many
networks train together, and so on down to one, which then trains plainly; what they had begun goes on from the last
checkpoint, or starts again where none is kept. Plain, the gradients of a batch are computed in parts
(:mod:`egocnn.train.engines.parts`), and validation by halves (:mod:`egocnn.nn.device`)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.nn.device import attempt, choose_device, inform, warn
from egocnn.train.engines.common import Build, Member, Progress, copy_of
from egocnn.train.engines.distributed.engine import DistributedEngine
from egocnn.train.engines.plain import PlainEngine, SideBySideEngine, gains_from_threads
from egocnn.train.engines.recorded.engine import RecordedEngine
from egocnn.train.history import History
from egocnn.train.metrics import monitor_of

OCCUPIED = 0.7  # Share of a GPU's free memory that networks and their graphs may fill.

Reports = Callable[[Sequence[History], TrainConfig], None]  # Told after every epoch how far all networks have come.
Keep = Callable[[Sequence[Progress]], None]
EngineName = Literal["plain", "recorded", "distributed"]


def fit(
    members: Sequence[Member], config: TrainConfig, *, engine: EngineName = "plain", resume: Keep | None = None,
    keep: Keep | None = None, report: Reports | None = None,
) -> list[History]:  # fmt: skip
    """Train every network until its epochs or its patience run out, or Ctrl-C; leave the best weights in all of them.
    The seeds of the members take the place of ``config.seed``. ``resume`` fills fresh progress from a checkpoint,
    ``keep`` stores it after every epoch, ``report`` tells the user."""
    device = choose_device(config.device)
    progress = [Progress.begin(member.network.to(device), config) for member in members]
    if resume is not None:
        resume(progress)
    for member, each in zip(members, progress, strict=True):
        assert member.train.target is not None
        each.history.monitor = monitor_of(config.monitor, member.train.target, member.network.widths)
        if (config.monitor, each.history.monitor) == ("auto", "roc_auc"):
            share = float(member.train.target.bincount().max()) / len(member.train)
            inform(f"one class has {share:.0%} of the training graphs: ROC AUC chooses the best epoch")

    def train(build: Build, numbers: Sequence[int]) -> bool:
        """All epochs of networks that are trained together; false after Ctrl-C."""
        some, own = [members[number] for number in numbers], [progress[number] for number in numbers]
        computing = None
        try:
            computing = build(some, own, config)
            while (alive := np.array([each.goes_on for each in own])).any():
                done = np.array([len(each.history.epochs) for each in own])
                alive &= done == done[alive].min()  # what was trained in several stacks may not have come equally far
                improved = np.zeros(len(some), bool)
                for r, ended in computing.train_epoch(1 + int(done[alive][0]), alive).items():
                    improved[r] = own[r].history.add(ended, window=config.window(len(some[r].validation)))
                computing.keep_best(improved)
                if keep is not None:
                    computing.update_progress()
                    keep(progress)
                if report is not None:
                    report([each.history for each in progress], config)
        except KeyboardInterrupt:
            for each in progress:
                each.history.interrupted = True
        if computing is not None:
            computing.finish()
        return not any(each.history.interrupted for each in progress)

    if engine != "recorded":
        is_threaded = engine == "plain" and gains_from_threads(members, config)
        plain = SideBySideEngine if is_threaded else PlainEngine
        train(DistributedEngine if engine == "distributed" else plain, range(len(members)))
        return [each.history for each in progress]
    waiting = list(_stacks(members, progress, config))
    while waiting:
        numbers = waiting.pop(0)
        own = [] if keep is not None else [progress[number] for number in numbers]
        before = [(copy_of(each.network), replace(each.history, epochs=list(each.history.epochs))) for each in own]
        is_done = attempt(partial(train, RecordedEngine, numbers))
        if is_done is None:
            for each, (weights, history) in zip(own, before, strict=True):
                each.network.load_state_dict(weights)
                each.history = history
            if len(numbers) > 1:
                warn("out of memory: fewer models are trained at a time, with the same result")
                half = len(numbers) // 2
                waiting[:0] = [numbers[:half], numbers[half:]]
                continue
            warn("out of memory: steps are no longer recorded, which is slower and gives the same result")
            is_done = train(PlainEngine, numbers)
        if not is_done:
            break
    return [each.history for each in progress]


def _stacks(members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> Iterator[list[int]]:
    """Numbers of the members that make a stack: with equal settings and equally far, as many as fit into the memory."""
    at_once = len(members)
    free = free_megabytes(choose_device(config.device))
    if free is not None:
        at_once = max(1, int(free / max(_megabytes(member, config) for member in members)))
    alike: dict[tuple[ModelConfig, int], list[int]] = {}
    for number, (member, each) in enumerate(zip(members, progress, strict=True)):
        alike.setdefault((member.network.config, len(each.history.epochs)), []).append(number)
    for numbers in alike.values():
        yield from (numbers[first : first + at_once] for first in range(0, len(numbers), at_once))


def free_megabytes(device: torch.device) -> float | None:
    """What a training may take of the memory of a GPU; None for a CPU, whose memory is not counted."""
    if device.type != "cuda":
        return None
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch has it, and uses it again
    return OCCUPIED * (torch.cuda.mem_get_info(device)[0] + cached) / 1e6


def _megabytes(member: Member, config: TrainConfig) -> float:
    """About what a network and its graphs take on a GPU, counted generously."""
    network, train = member.network, member.train
    model = network.config
    table = dict(network.named_parameters()).get("embed.table")
    rows = 1 if table is None else len(table)
    nodes = 2 * config.batch_size * int(train.node_ptr[-1]) / max(len(train), 1)
    per_node = 4 * rows + 64 * model.k + 24 * (model.depth + 1) * model.width
    weights = 32 * network.n_parameters  # the weights, their gradient, two moments, the best ones, and copies
    return (weights + nodes * per_node) / 1e6 + train.megabytes + member.validation.megabytes
