"""R networks, their graphs and seeds -> epochs of all of them, computed on the device; weights copied back at the end.

The host waits for the device once an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools
from egocnn.nn.device import choose_device
from egocnn.nn.model import EgoCNN
from egocnn.nn.stacked.network import StackedNetwork
from egocnn.train.engines.recorded.data import Parts, join
from egocnn.train.engines.recorded.optimise import StackedAdamW
from egocnn.train.engines.recorded.order import Order, Turns, portions
from egocnn.train.engines.recorded.step import EvaluationStep, Recorded, TrainingStep
from egocnn.train.history import Epoch
from egocnn.train.metrics import class_weights, r2_of_sums, sum_of_squares

NODES_AT_ONCE = 1 << 18
"""Nodes of all replicas together per step of the evaluation: bounds the memory."""

NUMBERS_AT_ONCE = 1 << 28
"""The same in numbers, for what each node reads of Patchy-San's table: labels may be many."""


class Stack:
    """Everything that lives on the device."""

    def __init__(
        self,
        networks: Sequence[EgoCNN],
        parts: Sequence[Parts],
        seeds: Sequence[int],
        config: TrainConfig,
    ) -> None:
        self._config = config
        self._device = device = choose_device(config.device)
        self._seeds = np.array(seeds)
        self._networks = list(networks)
        self.network = StackedNetwork(networks, device)
        self.optimizer = StackedAdamW(list(self.network.parameters.values()), weight_decay=config.weight_decay)
        self.best = [tensor.clone() for tensor in self.network.state]
        self._spread = np.array([[_spread(pair[side].target) for pair in parts] for side in (0, 1)])
        self._weights = _stacked_weights(networks, parts, device) if config.class_weights else None
        data, self._sizes, self._numbers = join(parts)
        self._data = data.to(device)
        self._set_up()

    def _set_up(self) -> None:
        """All that depends on which replicas there are."""
        train, validation = ([pair[side] for pair in self._numbers] for side in (0, 1))
        self._order = Order(train, self._seeds.tolist(), self._sizes, self._config)
        self._train = TrainingStep(
            self._data,
            self.network,
            self.optimizer,
            self._seeds.tolist(),
            self._config,
            steps=self._order.steps,
            width=self._order.width,
            class_weights=self._weights,
        )
        at_once = min(NODES_AT_ONCE, NUMBERS_AT_ONCE // self.network.table_rows)
        chosen, self._room = portions(validation, self._sizes, at_once)
        self._portions = len(chosen)
        self._evaluate = EvaluationStep(self._data, self.network, chosen, class_weights=self._weights)
        pool = torch.cuda.graph_pool_handle() if self._device.type == "cuda" else None
        self._recorded = tuple(Recorded(step, self._device, pool) for step in (self._train, self._evaluate))

    def saving(self, alive: Bools) -> float:
        """Nodes that replicas which have stopped would drag along in an epoch."""
        return float((~alive).mean() * sum(self._sizes.nodes[train].sum() for train, _ in self._numbers))

    @torch.no_grad()
    def keep_only(self, alive: Bools) -> None:
        """The others get their best weights now and leave the stack; to those that stay it makes no difference."""
        self.network.write_back(self.best)
        here = torch.from_numpy(np.flatnonzero(alive)).to(self._device)
        self.network.keep_only(here)
        self.optimizer.keep_only(here, list(self.network.parameters.values()))
        self.best = [tensor[here] for tensor in self.best]
        self._weights = None if self._weights is None else self._weights[here]
        self._seeds, self._spread = self._seeds[alive], self._spread[:, alive]
        self._numbers = [pair for pair, stays in zip(self._numbers, alive, strict=True) if stays]
        self._set_up()

    def run(self, number: int, alive: Bools) -> dict[int, Epoch]:
        """Every step of an epoch, and the validation after it: how it went for each replica that has not stopped."""
        started = time.perf_counter()
        turns = self._order.epoch(number, alive)
        train, evaluate = self._recorded
        self._train.begin(turns)
        for room in turns.rooms:
            train(room)
        self._evaluate.begin()
        for _ in range(self._portions):
            evaluate(self._room)
        scores = self._scores()  # all before was only sent off; here the host waits
        seconds = time.perf_counter() - started
        return {r: _epoch(number, turns, scores[:, r], seconds, r) for r in np.flatnonzero(alive).tolist()}

    def training_steps(self, number: int) -> list[Callable[[], None]]:
        """The steps of an epoch alone, to be called in turn, and again and again if need be."""
        turns = self._order.epoch(number, np.ones(len(self._seeds), bool))
        self._train.begin(turns)
        train, _ = self._recorded

        def restart() -> None:
            self._train.turn.restart()
            train(turns.rooms[0])

        return [restart, *(partial(train, room) for room in turns.rooms[1:])]

    def _scores(self) -> NDArray[np.float64]:
        """(4, R) loss and score in training, loss and score in validation"""
        sums = torch.stack([self._train.tally.sums, self._evaluate.tally.sums]).cpu().numpy()
        rows: list[NDArray[np.float64]] = []
        for of_steps, (loss, weight, graphs, hits, means), spread in zip(
            (True, False), sums, self._spread, strict=True
        ):
            with np.errstate(divide="ignore", invalid="ignore"):  # replicas that have stopped read no graphs
                rows.append(means / graphs if of_steps else loss / weight)
                rows.append(np.where(np.isnan(spread), hits / graphs, [*map(r2_of_sums, hits, spread)]))
        return np.stack(rows)

    @torch.no_grad()
    def keep_best(self, improved: Bools) -> None:
        """Remember the weights of replicas that have just become better than ever."""
        if improved.any():
            here = torch.from_numpy(improved).to(self._device)
            for best, now in zip(self.best, self.network.state, strict=True):
                best.copy_(torch.where(here.view(-1, *[1] * (now.ndim - 1)), now, best))

    def finish(self) -> None:
        """The best weights to the networks, the memory to whoever comes next."""
        self.network.write_back(self.best)
        for network in self._networks:
            network.eval()
        self._recorded = ()
        free_recorded_memory()


def free_recorded_memory() -> None:
    """Give back what steps were recorded in: torch keeps it aside for recordings, even those that are gone."""
    torch.cuda.empty_cache()


def _epoch(epoch: int, turns: Turns, scores: NDArray[np.float64], seconds: float, replica: int) -> Epoch:
    taken = np.flatnonzero(turns.chosen[:, replica, 0] >= 0)
    return Epoch(
        epoch=epoch,
        learning_rate=float(turns.learning_rate[taken[-1], replica]),
        train_loss=float(scores[0]),
        train_score=float(scores[1]),
        validation_loss=float(scores[2]),
        validation_score=float(scores[3]),
        seconds=seconds,
    )


def _spread(target: Tensor | None) -> float:
    """Of values around their mean, summed up in squares; NaN for classes."""
    if target is None or not target.is_floating_point():
        return float("nan")
    return sum_of_squares(target - target.mean())


def _stacked_weights(networks: Sequence[EgoCNN], parts: Sequence[Parts], device: torch.device) -> Tensor | None:
    """(R, C); None where values are predicted"""
    several = [
        class_weights(train, network.out.out_features) for network, (train, _) in zip(networks, parts, strict=True)
    ]
    present = [weights for weights in several if weights is not None]
    return torch.stack(present).to(device) if present else None
