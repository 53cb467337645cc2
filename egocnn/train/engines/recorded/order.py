"""Seeds and epoch -> which graphs every replica reads in which step, and how much room each step needs.

The order of a replica's graphs follows from its own seed and the epoch, exactly as in :mod:`egocnn.train.loop`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools, Ints
from egocnn.train.engines.common import epoch_seed, rate
from egocnn.train.engines.recorded.batch import Room
from egocnn.train.engines.recorded.data import Sizes

LEVELS = 8
"""An average batch takes this many units of room; few different amounts mean few recorded steps."""

ALIGNMENT = 16
"""Rows that a GPU's matrix units read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """One epoch of S steps."""

    chosen: Ints
    """(S, R, B) graph numbers, -1 for none"""
    learning_rate: NDArray[np.float64]
    """(S, R)"""
    rooms: tuple[Room, ...]
    """(S)"""


class Order:
    """The epochs of R replicas, each with graphs and a seed of its own."""

    def __init__(self, graphs: Sequence[Ints], seeds: Sequence[int], sizes: Sizes, config: TrainConfig) -> None:
        self._graphs, self._seeds, self._sizes, self._config = graphs, seeds, sizes, config
        self._batches = [math.ceil(len(own) / config.batch_size) for own in graphs]
        self.steps = max(self._batches)
        self.width = max(math.ceil(len(own) / n) for own, n in zip(graphs, self._batches, strict=True))
        places = {len(own): self._places(len(own), n) for own, n in zip(graphs, self._batches, strict=True)}
        self._slots = np.stack([places[len(own)] for own in graphs], axis=1)  # (S, R, B)
        all_graphs = np.concatenate(graphs)
        self._unit = Room(
            _unit(float(sizes.nodes[all_graphs].mean()) * self.width, ALIGNMENT),
            _unit(float(sizes.entries[all_graphs].mean()) * self.width, 1),
            _unit(float(sizes.rest[all_graphs].mean()) * self.width, 1),
        )

    def _places(self, n_graphs: int, batches: int) -> Ints:
        """(S, B) which of the shuffled graphs stand where: ``torch.tensor_split``, as one array; -1 for none"""
        place = np.full((self.steps, self.width), -1)
        for step, part in enumerate(np.array_split(np.arange(n_graphs), batches)):
            place[step, : len(part)] = part
        return place

    def epoch(self, number: int, alive: Bools) -> Turns:
        """The steps of this epoch (the first is 1); replicas that have stopped read no graph."""
        chosen = np.full(self._slots.shape, -1)
        for r in np.flatnonzero(alive).tolist():
            own = self._graphs[r]
            random = torch.Generator().manual_seed(epoch_seed(self._seeds[r], number))
            shuffled = own[torch.randperm(len(own), generator=random).numpy()]
            slots = self._slots[:, r]
            chosen[:, r] = np.where(slots >= 0, shuffled[slots], -1)
        return Turns(chosen, self._learning_rates(number), self.rooms(chosen))

    def rooms(self, chosen: Ints) -> tuple[Room, ...]:
        """chosen (S, R, B) -> per step, the least room in whole units that the largest replica fits in"""
        sizes, unit = self._sizes, self._unit
        needed = (
            _units(sizes.nodes, chosen, unit.nodes),
            _units(sizes.entries, chosen, unit.entries),
            _units(sizes.rest, chosen, unit.rest),
        )
        units = np.maximum.reduce(needed).tolist()
        return tuple(Room(n * unit.nodes, n * unit.entries, n * unit.rest) for n in units)

    def _learning_rates(self, epoch: int) -> NDArray[np.float64]:
        config = self._config
        of_batches = {
            n: [config.learning_rate * rate((epoch - 1 + step / n) / config.epochs, config) for step in range(n)]
            for n in set(self._batches)
        }
        rates = np.zeros((self.steps, len(self._batches)))
        for r, n in enumerate(self._batches):
            rates[:n, r] = of_batches[n]
        return rates


def _unit(average: float, multiple: int) -> int:
    return max(1, math.ceil(average / LEVELS / multiple)) * multiple


def _units(sizes: Ints, chosen: Ints, unit: int) -> Ints:
    """(S) units that the largest replica of each step fills, at least one"""
    total = np.where(chosen >= 0, sizes[chosen], 0).sum(axis=2).max(axis=1)
    units: Ints = np.maximum(-(-total // unit), 1)
    return units


def portions(graphs: Sequence[Ints], sizes: Sizes, nodes_at_once: int) -> tuple[Ints, Room]:
    """All graphs of every replica in order, cut into few steps of equal room: chosen (S, R, B), and that room."""
    largest = max(int(sizes.nodes[own].sum()) for own in graphs)
    most = max(map(len, graphs))
    steps = min(most, math.ceil(largest * len(graphs) / nodes_at_once)) or 1
    width = math.ceil(most / steps)
    filled = np.full((len(graphs), steps * width), -1)
    for r, own in enumerate(graphs):
        filled[r, : len(own)] = own
    chosen = filled.reshape(len(graphs), steps, width).transpose(1, 0, 2)
    rooms = (int(_units(each, chosen, 1).max()) for each in (sizes.nodes, sizes.entries, sizes.rest))
    return np.ascontiguousarray(chosen), Room(*rooms)
