"""The plain engine: every batch is cut out, sent through the network and forgotten; in parts where memory is short.

Several networks take turns, epoch by epoch; none of them notices the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device
from egocnn.nn.model import EgoCNN
from egocnn.train.engines.common import STEEPEST, Member, Progress, copy_of, epoch_seed, rate
from egocnn.train.engines.parts import GradientStep
from egocnn.train.history import Epoch
from egocnn.train.metrics import Scores, class_weights, evaluate, loss_of, weight_of

Trainer = Callable[[int], Epoch]
"""Trains one network through the epoch of this number, and scores it."""


class PlainEngine:
    """See :class:`egocnn.train.engines.common.Engine`."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        device = choose_device(config.device)
        # what several networks share is sent to the device once
        moved = {id(part): part.to(device) for member in members for part in (member.train, member.validation)}
        here = [
            replace(member, train=moved[id(member.train)], validation=moved[id(member.validation)])
            for member in members
        ]
        self.progress = progress
        self._trainers = [self.trainer(*each, config) for each in zip(here, progress, strict=True)]

    def trainer(self, member: Member, progress: Progress, config: TrainConfig) -> Trainer:
        return batch_by_batch(member, progress, config)

    def run(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        return {r: self._trainers[r](epoch) for r in np.flatnonzero(alive).tolist()}

    def keep_best(self, improved: Bools) -> None:
        for r in np.flatnonzero(improved).tolist():
            self.progress[r].best = copy_of(self.progress[r].network)

    def hand_over(self) -> None:
        """Nothing to do: the networks and optimisers of the progress are those that were trained."""

    def finish(self) -> None:
        for progress in self.progress:
            progress.network.load_state_dict(progress.best)
            progress.network.eval()


def batch_by_batch(member: Member, progress: Progress, config: TrainConfig) -> Trainer:
    """Epochs of one network."""
    network, train, device = member.network, member.train, choose_device(config.device)
    weights = class_weights(train, network.out.out_features) if config.class_weights else None

    def forward(chosen: Tensor) -> tuple[Tensor, Tensor]:
        batch = train.batch(chosen)
        assert batch.target is not None
        with arithmetic(config, device):
            outputs = network(batch).output
        return outputs.float(), batch.target

    step = GradientStep(network, forward, partial(loss_of, weights=weights), partial(weight_of, weights=weights))

    def learn(epoch: int) -> tuple[float, float]:
        batches = shuffled(train, config)
        results = Scores()
        for number, chosen in enumerate(batches):
            set_rate(progress.optimizer, (epoch - 1 + number / len(batches)) / config.epochs, config)
            nodes = (train.node_ptr[chosen + 1] - train.node_ptr[chosen]).sum()
            learn_norms(network, graphs=len(chosen), nodes=int(nodes))
            results.add(*step.compute(chosen))
            update(progress)
        return results.loss, results.score

    return epoch_by_epoch(
        member, progress, config, learn, lambda: evaluate(network, member.validation, weights=weights)
    )


def epoch_by_epoch(
    member: Member,
    progress: Progress,
    config: TrainConfig,
    learn: Callable[[int], tuple[float, float]],
    validate: Callable[[], tuple[float, float]],
) -> Trainer:
    """Train, then validate, both giving loss and score; all random numbers of an epoch follow from its number."""
    device = choose_device(config.device)

    def run(epoch: int) -> Epoch:
        started = time.perf_counter()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(epoch_seed(member.seed, epoch))
            train_loss, train_score = learn(epoch)
            loss, score = validate()
        return Epoch(
            epoch=epoch,
            learning_rate=progress.optimizer.param_groups[0]["lr"],
            train_loss=train_loss,
            train_score=train_score,
            validation_loss=loss,
            validation_score=score,
            seconds=time.perf_counter() - started,
        )

    return run


def shuffled(train: Batchable, config: TrainConfig) -> tuple[Tensor, ...]:
    """The numbers of all graphs in random order, cut into batches."""
    order = torch.randperm(len(train), device="cpu").to(train.node_ptr.device)
    return torch.tensor_split(order, math.ceil(len(train) / config.batch_size))  # equal sizes: no batch of one


def learn_norms(network: EgoCNN, *, graphs: int, nodes: int) -> None:
    """Training mode, as far as a batch of this size allows."""
    network.train(nodes > 1)  # a single node has no spread for the norms to learn
    for norm in (network.pool_norm, network.norm):
        norm.train(network.training and graphs > 1)  # nor has a single graph for those of the head


def set_rate(optimizer: torch.optim.Optimizer, done: float, config: TrainConfig) -> None:
    """The learning rate after this share of all steps."""
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate * rate(done, config)


def update(progress: Progress) -> None:
    """One step down the slope that the gradients tell."""
    torch.nn.utils.clip_grad_norm_(progress.network.parameters(), STEEPEST)
    progress.optimizer.step()


def arithmetic(config: TrainConfig, device: torch.device) -> Any:
    """bfloat16 matrix products pay on a GPU; a CPU always computes in float32."""
    if device.type == "cuda" and config.precision in ("auto", "bfloat16"):
        return torch.autocast("cuda", torch.bfloat16)
    return nullcontext()
