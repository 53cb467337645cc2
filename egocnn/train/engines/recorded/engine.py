"""The recorded engine: R networks as one stack, whose steps a GPU records once and then replays; a CPU just runs them.
Small graphs leave a GPU waiting for the next launch. Here every tensor has a leading axis R, and the host waits for the
device once an epoch. The result of a network is that of the plain engine with its seed, whatever the other networks,
but for rounding and for which activations dropout drops; either engine goes on from a checkpoint of the other."""

import copy
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools, Floats
from egocnn.nn.device import choose_device
from egocnn.nn.stacked import StackedNetwork
from egocnn.train.engines.common import Member, Progress, copy_of
from egocnn.train.engines.recorded.adamw import StackedAdamW
from egocnn.train.engines.recorded.batches import Schedule, join, portions, sizes_of
from egocnn.train.engines.recorded.steps import EvaluationStep, StackedPresence, TrainingStep
from egocnn.train.history import SCORES, Epoch
from egocnn.train.metrics import SeveralTargets, monitored, r2_of_sums, sum_of_squares

NODES_AT_ONCE = 1 << 18  # Nodes of all replicas together per step of the evaluation: bounds the memory.
NUMBERS_AT_ONCE = 1 << 28  # The same in numbers, for what each node reads of Patchy-San's table: labels may be many.

# Nodes in all steps to come that must be saved before networks which have stopped leave the stack: to record the steps
# anew takes seconds.
WORTH_SHRINKING = 3e7


class RecordedEngine:
    """See :class:`egocnn.train.engines.common.Engine`. All networks have an equal share of the seconds of an epoch."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        self._progress, self._config = progress, config
        self._device = device = choose_device(config.device)
        self._seeds = np.array([member.seed for member in members])
        self._here = np.arange(len(members))  # those that are still in the stack
        self._improved = np.zeros(len(members), bool)
        networks = [member.network for member in members]
        self.network = StackedNetwork(networks, device)
        is_new = not any(each.history.epochs for each in progress)
        self._best = [tensor.clone() for tensor in self.network.state] if is_new else _stacked_best(progress, device)
        self._optimizer = StackedAdamW(list(self.network.parameters.values()), weight_decay=config.weight_decay)
        if not is_new:
            self._optimizer.load([each.optimizer for each in progress], [self._parameters(n) for n in networks])
        # what several networks share is loaded, and sent to the device, once
        loaded = {id(part): part.in_memory() for member in members for part in (member.train, member.validation)}
        parts = [(loaded[id(member.train)], loaded[id(member.validation)]) for member in members]
        self._spread = np.array([[_spread(pair[side].target) for pair in parts] for side in (0, 1)])
        self._weights = _stacked_weights(members, config, device)
        data, self._numbers = join(parts)
        self._data, self._sizes = data.to(device), sizes_of(data)
        self._set_up()

    def _set_up(self) -> None:
        """All that depends on which replicas there are."""
        config, seeds = self._config, self._seeds.tolist()
        train, validation = ([pair[side] for pair in self._numbers] for side in (0, 1))
        self._schedule = Schedule(train, seeds, self._sizes, config)
        at_once = min(NODES_AT_ONCE, NUMBERS_AT_ONCE // self.network.table_rows)
        chosen, self._validation_shape = portions(validation, self._sizes, at_once)
        self._portions = len(chosen)
        pool = torch.cuda.graph_pool_handle() if self._device.type == "cuda" else None
        own_seeds = torch.tensor(seeds, dtype=torch.int64, device=self._device)
        empty = torch.full((self._schedule.steps, len(seeds), self._schedule.width), -1)
        presence = None
        if config.parts > 0 and config.missing > 0:
            first = torch.tensor([int(own[0]) for own in train], device=self._device)
            presence = StackedPresence(own_seeds, first, self._data.node_ptr, config)
        how: dict[str, Any] = {"seeds": own_seeds, "presence": presence, "precision": config.precision}
        weights = (None, None) if self._weights is None else self._weights
        own = (self._data, self.network, empty, weights[0], pool)
        self._train = TrainingStep(*own, optimizer=self._optimizer, **how)
        self._evaluate = EvaluationStep(self._data, self.network, torch.from_numpy(chosen), weights[1], pool)

    def _parameters(self, network: nn.Module) -> list[nn.Parameter]:
        return [network.get_parameter(name) for name in self.network.parameters]

    def train_epoch(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        here = alive[self._here]
        idle = (~here).mean() * sum(self._sizes[0, train].sum() for train, _ in self._numbers)  # nodes dragged along
        if idle * (self._config.epochs + 1 - epoch) > WORTH_SHRINKING:
            self._shrink(here)
            here = here[here]
        started = time.perf_counter()
        plan = self._schedule.epoch(epoch, here)
        self._train.begin(plan)
        for shape in plan.shapes:
            self._train(shape)
        self._evaluate.restart()
        for _ in range(self._portions):
            self._evaluate(self._validation_shape)
        scores = self._scores()  # all before was only sent off; here the host waits
        seconds = (time.perf_counter() - started) / max(int(here.sum()), 1)
        ended = {}
        for r in np.flatnonzero(here).tolist():
            last = np.flatnonzero(plan.chosen[:, r, 0] >= 0)[-1]
            found = dict(zip(SCORES, scores[:, r].tolist(), strict=True))
            rate = float(plan.learning_rate[last, r])
            ended[int(self._here[r])] = Epoch(epoch=epoch, learning_rate=rate, seconds=seconds, **found)
        return ended

    @torch.no_grad()
    def _shrink(self, stay: Bools) -> None:
        """The others get their best weights now and leave the stack; to those that stay it makes no difference."""
        self.network.write_back(self._best)
        here = torch.from_numpy(np.flatnonzero(stay)).to(self._device)
        self.network.keep_only(here)
        self._optimizer.keep_only(here, list(self.network.parameters.values()))
        self._best = [tensor[here] for tensor in self._best]
        self._weights = None if self._weights is None else self._weights[:, here]
        self._here, self._seeds, self._spread = self._here[stay], self._seeds[stay], self._spread[:, stay]
        self._numbers = [pair for pair, stays in zip(self._numbers, stay, strict=True) if stays]
        self._set_up()

    def _scores(self) -> Floats:
        """(4, R) loss and score in training, loss and score in validation"""
        sums = torch.stack([self._train.sums, self._evaluate.sums]).cpu().numpy()
        rows: list[Floats] = []
        widths = self.network.network.widths
        with np.errstate(divide="ignore", invalid="ignore"):  # replicas that have stopped read no graphs
            for (loss, weight, graphs, hits, means), spread in zip(sums, self._spread, strict=True):
                rows.append(loss / weight if rows else means / graphs)
                score = np.where(np.isnan(spread), hits / graphs, [*map(r2_of_sums, hits, spread)])
                rows.append(rows[-1].copy() if widths else score)  # as loss_and_score has it
        for r, number in enumerate(self._here.tolist()):
            monitor, loss = self._progress[number].history.monitor, float(rows[2][r])
            if widths or monitor not in ("accuracy", "r2"):
                rows[3][r] = monitored(monitor, *self._evaluate.outputs_and_targets(r), loss, widths)
        return np.stack(rows)

    @torch.no_grad()
    def keep_best(self, improved: Bools) -> None:
        self._improved = improved
        if improved.any():
            here = torch.from_numpy(improved[self._here]).to(self._device)
            for best, now in zip(self._best, self.network.state, strict=True):
                best.copy_(torch.where(here.view(-1, *[1] * (now.ndim - 1)), now, best))

    def update_progress(self) -> None:
        self.network.write_back(self.network.state)
        here = [self._progress[r] for r in self._here.tolist()]
        self._optimizer.store([each.optimizer for each in here], [self._parameters(each.network) for each in here])
        for r in np.flatnonzero(self._improved).tolist():
            self._progress[r].best = copy_of(self._progress[r].network)

    def finish(self) -> None:
        self.network.write_back(self._best)
        for progress in self._progress:
            progress.network.eval()
        self._train.free()
        self._evaluate.free()
        torch.cuda.empty_cache()  # torch keeps the memory of recordings aside, even of those that are gone


def _stacked_best(progress: Sequence[Progress], device: torch.device) -> list[Tensor]:
    networks = [copy.deepcopy(each.network) for each in progress]
    for network, each in zip(networks, progress, strict=True):
        network.load_state_dict(each.best)
    return StackedNetwork(networks, device).state


def _stacked_weights(members: Sequence[Member], config: TrainConfig, device: torch.device) -> Tensor | None:
    """(2, R, C) what classes and targets count in training and in validation; None where all count alike"""
    stacked = []
    for member in members:
        if (own := member.weights(config)) is None:
            return None
        assert member.validation.target is not None
        sides = (own, own.on(member.validation.target)) if isinstance(own, SeveralTargets) else (own, own)
        flat = [torch.cat(side.weights) if isinstance(side, SeveralTargets) else side for side in sides]
        stacked.append(torch.stack(flat).to(device))
    return torch.stack(stacked, dim=1)


def _spread(target: Tensor | None) -> float:
    """The sum of the squared distances of values from their mean; NaN for classes."""
    if target is None or not target.is_floating_point():
        return float("nan")
    return sum_of_squares(target - target.mean())
