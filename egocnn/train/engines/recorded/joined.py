"""The encoded graphs of all replicas -> one set of flat tensors on the device, and batches of fixed shape cut from it.

The nodes of every replica fill the first of M places, its bag entries the first of E; what is left over is padding. A
batch is arithmetic on tensors whose shapes do not depend on the graphs, as CUDA graphs require: nothing is read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.encode.batch import EncodedGraphs, RestSteps
from egocnn.nn.engines.beyond import Pairs, StackedRest
from egocnn.nn.stacked.batch import StackedBatch

Parts = tuple[EncodedGraphs, EncodedGraphs]
"""the graphs to learn from, and those that choose the best epoch"""


class BatchShape(NamedTuple):
    """Places per replica in a batch."""

    nodes: int
    """M"""
    entries: int
    """E, of the bags"""
    rest: int = 0
    """of the neighbours beyond K"""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedGraphs:
    """The graphs of all replicas end to end; a replica knows its own by their numbers."""

    graphs: EncodedGraphs
    """in which ``place`` is the place of every node in the ranking of its own graph"""
    rest_back: RestSteps | None
    """neighbours beyond K by the neighbour: from it to the node that has it beyond K"""

    def to(self, device: torch.device) -> JoinedGraphs:
        """A copy on the device."""
        return JoinedGraphs(self.graphs.to(device), None if self.rest_back is None else self.rest_back.to(device))

    @property
    def sizes(self) -> Ints:
        """(3, G) places that every graph takes in a batch: of nodes, of bag entries, of neighbours beyond K"""
        nodes, rest = self.graphs.node_ptr, self.graphs.rest
        beyond = torch.zeros_like(nodes) if rest is None else rest.ptr[nodes]
        return torch.stack([nodes, self.graphs.bag_ptr[nodes], beyond]).diff().numpy()

    def batch(self, chosen: Tensor, shape: BatchShape) -> StackedBatch:
        """chosen (R, B): graph numbers, -1 for none"""
        data = self.graphs
        exists = chosen >= 0
        graph = chosen.clamp(min=0)
        graph_of, present, node, counts = _entries(data.node_ptr, graph, exists, shape.nodes)
        steps = data.steps[node]
        position = torch.arange(shape.nodes, device=chosen.device)
        table = torch.where((steps != 0) & present[..., None], position[:, None] + steps, -1)
        owner, _, entry, _ = _entries(data.bag_ptr, node, present, shape.entries)
        rest = None
        if data.rest is not None and self.rest_back is not None:
            ahead, back = (_pairs(each, node, present, shape.rest) for each in (data.rest, self.rest_back))
            rest = StackedRest(ahead, back, data.rest.share[node])
        assert data.target is not None, "graphs to learn from have targets"
        return StackedBatch(
            table=table.to(torch.int32),
            present=present,
            node=node,
            graph=graph,
            graph_of=graph_of,
            node_counts=torch.cat([counts, shape.nodes - counts.sum(1, keepdim=True)], dim=1),
            rest=rest,
            rows=_at(data.bag_rows, entry),
            owner=owner,
            weight=None if data.bag_weight is None else _at(data.bag_weight, entry),
            node_label=torch.where(present, data.node_label[node], -1),
            attributes=torch.where(present[..., None], data.attributes[node], 0),
            edge_weight=None if data.adjacency is None else torch.where(present[..., None], data.adjacency[node], 0),
            rank=data.place[node],
            exists=exists,
            target=data.target[graph],
        )


def join(parts: Sequence[Parts]) -> tuple[JoinedGraphs, list[tuple[Ints, Ints]]]:
    """The tensors of all parts, each collection once, and the numbers of every replica's graphs in them."""
    collections = {id(each): each for pair in parts for each in pair}
    whole = EncodedGraphs.concat(list(collections.values()))
    ends = np.cumsum([len(each) for each in collections.values()])
    numbers = {key: np.arange(end - len(collections[key]), end) for key, end in zip(collections, ends, strict=True)}
    joined = JoinedGraphs(
        replace(whole, place=_rank_in_graph(whole)), None if whole.rest is None else _by_neighbour(whole.rest)
    )
    return joined, [(numbers[id(train)], numbers[id(validation)]) for train, validation in parts]


def _by_neighbour(rest: RestSteps) -> RestSteps:
    """Sorted by the neighbour instead of the node."""
    counts = rest.ptr.diff()
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
    source = owner + rest.steps
    order = torch.argsort(source, stable=True)
    counts = torch.bincount(source, minlength=len(counts))
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return RestSteps(ptr, (owner - source)[order], rest.share)


def _rank_in_graph(encoded: EncodedGraphs) -> Tensor:
    counts = encoded.node_ptr.diff()
    graph_of = torch.repeat_interleave(torch.arange(len(counts)), counts)
    order = torch.argsort(encoded.place, stable=True)
    order = order[torch.argsort(graph_of[order], stable=True)]  # by graph, then by place
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - encoded.node_ptr[graph_of]
    return rank


def _pairs(rest: RestSteps, node: Tensor, present: Tensor, places: int) -> Pairs:
    owner, used, entry, counts = _entries(rest.ptr, node, present, places)
    owner = owner.clamp(max=node.shape[1] - 1)
    return Pairs(torch.where(used, owner + _at(rest.steps, entry), 0), counts.cumsum(1) - counts, counts)


def _entries(ptr: Tensor, owners: Tensor, exists: Tensor, places: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What owners (R, n) have from ``ptr[owner]`` to ``ptr[owner + 1]`` fills the places, one owner after the other.

    Returns whose each place is (n where left over), whether it is used, which entry it holds, and counts (R, n).
    """
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
