"""The recorded engine: R networks as one stack, whose steps a GPU records once and then replays; a CPU just runs them.

The result of a network is that of the plain engine with its seed, but for rounding and for which activations dropout
drops; it does not depend on the other networks. What dropout drops follows from the seed and the number of steps done,
so a resumed training needs no more than its checkpoint, and either engine goes on from a checkpoint of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools
from egocnn.nn.device import choose_device
from egocnn.nn.stacked.network import StackedNetwork
from egocnn.train.engines.common import Member, Progress, copy_of
from egocnn.train.engines.recorded.stack import Stack
from egocnn.train.history import Epoch

WORTH_SHRINKING = 3e7
"""Nodes in all steps to come that must be saved before networks which have stopped leave the stack: to record the
steps anew takes seconds."""


class RecordedEngine:
    """See :class:`egocnn.train.engines.common.Engine`. The seconds of an epoch are those of all networks together."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        self._progress, self._config = progress, config
        networks = [member.network for member in members]
        # what several networks share is loaded, and sent to the device, once
        loaded = {id(part): part.in_memory() for member in members for part in (member.train, member.validation)}
        parts = [(loaded[id(member.train)], loaded[id(member.validation)]) for member in members]
        self._stack = Stack(networks, parts, [member.seed for member in members], config)
        if any(each.history.epochs for each in progress):
            self._stack.best = _stacked_best(progress, choose_device(config.device))
        self._stack.optimizer.take_over([each.optimizer for each in progress], [self._parameters(n) for n in networks])
        self._here = np.arange(len(members))
        """the members that are still in the stack"""
        self._improved = np.zeros(len(members), bool)

    def _parameters(self, network: nn.Module) -> list[nn.Parameter]:
        return [network.get_parameter(name) for name in self._stack.network.parameters]

    def run(self, epoch: int, alive: Bools) -> dict[int, Epoch]:
        here = alive[self._here]
        if self._stack.saving(here) * (self._config.epochs + 1 - epoch) > WORTH_SHRINKING:
            self._stack.keep_only(here)
            self._here, here = self._here[here], here[here]
        return {int(self._here[r]): ended for r, ended in self._stack.run(epoch, here).items()}

    def keep_best(self, improved: Bools) -> None:
        self._stack.keep_best(improved[self._here])
        self._improved = improved

    def hand_over(self) -> None:
        self._stack.network.write_back(self._stack.network.state)
        here = [self._progress[r] for r in self._here.tolist()]
        self._stack.optimizer.hand_over(
            [each.optimizer for each in here], [self._parameters(each.network) for each in here]
        )
        for r in np.flatnonzero(self._improved).tolist():
            self._progress[r].best = copy_of(self._progress[r].network)

    def finish(self) -> None:
        self._stack.finish()


def _stacked_best(progress: Sequence[Progress], device: torch.device) -> list[Tensor]:
    """The best weights so far in the order of the stack's state; the networks end as they were."""
    networks = [each.network for each in progress]
    now = [copy_of(network) for network in networks]
    for each in progress:
        each.network.load_state_dict(each.best)
    best = [tensor.clone() for tensor in StackedNetwork(networks, device).state]
    for network, state in zip(networks, now, strict=True):
        network.load_state_dict(state)
    return best
