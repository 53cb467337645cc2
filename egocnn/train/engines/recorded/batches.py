"""Seeds, epoch and the encoded graphs of all replicas -> what each replica reads in every step, and batches of fixed
shape. The graphs are one set of flat tensors on the device. The nodes of every replica fill the first of M places, its
bag entries the first of E; what is left over is padding. A batch is arithmetic on tensors of fixed shapes, as CUDA
graphs require: nothing is read back. The order of a replica's graphs follows from its own seed and the epoch, exactly
as in the plain engine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn.stacked import StackedBatch
from egocnn.train.engines.common import epoch_seed, rate

Parts = tuple[EncodedGraphs, EncodedGraphs]  # the graphs to learn from, and those that choose the best epoch


class BatchShape(NamedTuple):
    """Places per replica in a batch."""

    nodes: int  # M
    entries: int  # E, of the bags


def join(parts: Sequence[Parts]) -> tuple[EncodedGraphs, list[tuple[Ints, Ints]]]:
    """All parts end to end, each collection once, and the numbers of every replica's graphs in them."""
    collections = {id(each): each for pair in parts for each in pair}
    whole = EncodedGraphs.concat(list(collections.values()))
    ends = np.cumsum([len(each) for each in collections.values()])
    numbers = {key: np.arange(end - len(collections[key]), end) for key, end in zip(collections, ends, strict=True)}
    return whole, [(numbers[id(train)], numbers[id(validation)]) for train, validation in parts]


def sizes_of(data: EncodedGraphs) -> Ints:
    """(2, G) places that every graph takes in a batch: of nodes, and of bag entries"""
    return torch.stack([data.node_ptr, data.bag_ptr[data.node_ptr]]).diff().numpy()


def batch_of(data: EncodedGraphs, chosen: Tensor, shape: BatchShape) -> StackedBatch:
    """Of joined graphs; chosen (R, B): graph numbers, -1 for none"""
    exists, graph = chosen >= 0, chosen.clamp(min=0)
    graph_of, present, node, counts = _entries(data.node_ptr, graph, exists, shape.nodes)
    steps = data.steps[node]
    position = torch.arange(shape.nodes, device=chosen.device)
    table = torch.where((steps != 0) & present[..., None], position[:, None] + steps, -1)
    owner, _, entry, _ = _entries(data.bag_ptr, node, present, shape.entries)
    assert data.target is not None, "graphs to learn from have targets"
    return StackedBatch(
        table=table.to(torch.int32), present=present, node=node, graph=graph, graph_of=graph_of,
        node_counts=torch.cat([counts, shape.nodes - counts.sum(1, keepdim=True)], dim=1),
        rows=_at(data.bag_rows, entry), owner=owner,
        weight=None if data.bag_weight is None else _at(data.bag_weight, entry),
        node_label=torch.where(present, data.node_label[node], -1),
        attributes=torch.where(present[..., None], data.attributes[node], 0), place=data.place[node], exists=exists,
        target=data.target[graph],
    )  # fmt: skip


def _entries(ptr: Tensor, owners: Tensor, exists: Tensor, places: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What owners (R, n) have from ``ptr[owner]`` to ``ptr[owner + 1]`` fills the places, one owner after the other.
    Returns whose each place is (n where left over), whether it is used, which entry it holds, and counts (R, n)."""
    first = ptr[owners]
    counts = torch.where(exists, ptr[owners + 1] - first, 0)
    ends = counts.cumsum(1)
    place = torch.arange(places, device=counts.device).expand(len(counts), -1).contiguous()
    owner = torch.searchsorted(ends, place, right=True)
    within = owner.clamp(max=counts.shape[1] - 1)
    used = owner < counts.shape[1]
    entry = first.gather(1, within) + place - (ends - counts).gather(1, within)
    return owner, used, torch.where(used, entry, 0), counts


def _at(values: Tensor, entry: Tensor) -> Tensor:
    """Graphs without a single bag entry leave nothing to read, and nothing that is read."""
    return values[entry] if len(values) else values.new_zeros(entry.shape)


LEVELS = 8  # An average batch takes this many units of places; few different shapes mean few recorded steps.
ALIGNMENT = (16, 1)  # Units of nodes and entries are multiples of this: a GPU's matrix units read 16 rows at once.


@dataclass(frozen=True, slots=True, eq=False)
class EpochPlan:
    """One epoch of S steps."""

    number: int  # the first is 1
    chosen: Ints  # (S, R, B) graph numbers, -1 for none
    learning_rate: Floats  # (S, R)
    shapes: tuple[BatchShape, ...]  # (S)


class Schedule:
    """The epochs of R replicas, each with graphs and a seed of its own; sizes (2, G) of all graphs."""

    def __init__(self, graphs: Sequence[Ints], seeds: Sequence[int], sizes: Ints, config: TrainConfig) -> None:
        self._graphs, self._seeds, self._sizes, self._config = graphs, seeds, sizes, config
        self._batches = [math.ceil(len(own) / config.batch_size) for own in graphs]
        self.steps = max(self._batches)
        self.width = max(math.ceil(len(own) / n) for own, n in zip(graphs, self._batches, strict=True))
        places = {len(own): self._places(len(own), n) for own, n in zip(graphs, self._batches, strict=True)}
        self._slots = np.stack([places[len(own)] for own in graphs], axis=1)  # (S, R, B)
        average = sizes[:, np.concatenate(graphs)].mean(axis=1) * self.width
        self._unit = np.maximum(np.ceil(average / LEVELS / ALIGNMENT), 1).astype(np.int64) * ALIGNMENT

    def _places(self, n_graphs: int, batches: int) -> Ints:
        """(S, B) which of the shuffled graphs stand where: ``torch.tensor_split``, as one array; -1 for none"""
        place = np.full((self.steps, self.width), -1)
        for step, part in enumerate(np.array_split(np.arange(n_graphs), batches)):
            place[step, : len(part)] = part
        return place

    def epoch(self, number: int, alive: Bools) -> EpochPlan:
        """The steps of this epoch (the first is 1); replicas that have stopped read no graph."""
        chosen = np.full(self._slots.shape, -1)
        for r in np.flatnonzero(alive).tolist():
            own = self._graphs[r]
            random = torch.Generator().manual_seed(epoch_seed(self._seeds[r], number))
            shuffled = own[torch.randperm(len(own), generator=random).numpy()]
            slots = self._slots[:, r]
            chosen[:, r] = np.where(slots >= 0, shuffled[slots], -1)
        units = _units(self._sizes, chosen, self._unit).max(axis=0)
        shapes = tuple(BatchShape(*(n * self._unit).tolist()) for n in units)
        config, batches = self._config, np.array(self._batches)
        rates = np.zeros((self.steps, len(batches)))
        for n in set(self._batches):
            shares = [rate((number - 1 + step / n) / config.epochs, config) for step in range(n)]
            rates[:n, batches == n] = config.learning_rate * np.array(shares)[:, None]
        return EpochPlan(number, chosen, rates, shapes)


def _units(sizes: Ints, chosen: Ints, unit: Ints) -> Ints:
    """(2, S) units that the largest replica of each step fills, at least one"""
    total = np.where(chosen >= 0, sizes[:, chosen], 0).sum(axis=3).max(axis=2)
    return np.asarray(np.maximum(-(-total // unit[:, None]), 1))


def portions(graphs: Sequence[Ints], sizes: Ints, nodes_at_once: int) -> tuple[Ints, BatchShape]:
    """All graphs of every replica in order, cut into few steps of one shape: chosen (S, R, B), and that shape."""
    largest = max(int(sizes[0, own].sum()) for own in graphs)
    most = max(map(len, graphs))
    steps = min(most, math.ceil(largest * len(graphs) / nodes_at_once)) or 1
    width = math.ceil(most / steps)
    filled = np.full((len(graphs), steps * width), -1)
    for r, own in enumerate(graphs):
        filled[r, : len(own)] = own
    chosen = np.ascontiguousarray(filled.reshape(len(graphs), steps, width).transpose(1, 0, 2))
    return chosen, BatchShape(*_units(sizes, chosen, np.ones(2, np.int64)).max(axis=1).tolist())
