"""Chosen graphs (R, B) -> one batch of fixed shape, built on the device.

Every replica's nodes fill the first places of M, its bag entries those of E; what is left over is padding. All of it
is arithmetic on tensors whose shapes do not depend on the graphs, as CUDA graphs require: nothing is read back.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.encode.batch import RestSteps
from egocnn.nn.engines.beyond import Pairs, StackedRest
from egocnn.nn.stacked.batch import StackedBatch
from egocnn.train.engines.recorded.data import StackedData


@dataclass(frozen=True, slots=True)
class Room:
    """Places per replica: the shape of a batch."""

    nodes: int
    """M"""
    entries: int
    """E, of the bags"""
    rest: int = 0
    """of the neighbours beyond K"""


def build(data: StackedData, chosen: Tensor, room: Room) -> StackedBatch:
    """chosen (R, B): graph numbers, -1 for none"""
    B = chosen.shape[1]
    exists = chosen >= 0
    graph = chosen.clamp(min=0)
    first_node = data.node_ptr[graph]
    counts = torch.where(exists, data.node_ptr[graph + 1] - first_node, 0)
    graph_of, inside = _owners(counts, room.nodes)
    present = graph_of < B
    position = torch.arange(room.nodes, device=chosen.device)
    node = torch.where(present, first_node.gather(1, graph_of.clamp(max=B - 1)) + inside, 0)
    steps = data.steps[node]
    table = torch.where((steps != 0) & present[..., None], position[:, None] + steps, -1)

    first_entry = data.bag_ptr[node]
    entry_counts = torch.where(present, data.bag_ptr[node + 1] - first_entry, 0)
    owner, inside = _owners(entry_counts, room.entries)
    used = owner < room.nodes
    entry = torch.where(used, first_entry.gather(1, owner.clamp(max=room.nodes - 1)) + inside, 0)

    rest = None
    if data.rest is not None and data.rest_back is not None:
        ahead, back = (_pairs(each, node, present, room.rest) for each in (data.rest, data.rest_back))
        rest = StackedRest(ahead, back, data.rest.share[node])

    padding = room.nodes - counts.sum(1, keepdim=True)
    return StackedBatch(
        table=table.to(torch.int32),
        present=present,
        graph_of=graph_of,
        node_counts=torch.cat([counts, padding], dim=1),
        rest=rest,
        rows=_at(data.bag_rows, entry),
        owner=owner,
        weight=None if data.bag_weight is None else _at(data.bag_weight, entry),
        node_label=torch.where(present, data.node_label[node], -1),
        attributes=torch.where(present[..., None], data.attributes[node], 0),
        edge_weight=None if data.adjacency is None else torch.where(present[..., None], data.adjacency[node], 0),
        rank=data.rank[node],
        exists=exists,
        target=data.target[graph],
    )


def _pairs(rest: RestSteps, node: Tensor, present: Tensor, places: int) -> Pairs:
    first = rest.ptr[node]
    counts = torch.where(present, rest.ptr[node + 1] - first, 0)
    owner, inside = _owners(counts, places)
    used = owner < node.shape[1]
    owner = owner.clamp(max=node.shape[1] - 1)
    entry = torch.where(used, first.gather(1, owner) + inside, 0)
    return Pairs(torch.where(used, owner + _at(rest.steps, entry), 0), counts.cumsum(1) - counts, counts)


def _owners(counts: Tensor, places: int) -> tuple[Tensor, Tensor]:
    """Counts (R, n) fill the places in turn: who owns each (n where left over), and which of its own it is."""
    ends = counts.cumsum(1)
    place = torch.arange(places, device=counts.device).expand(len(counts), -1).contiguous()
    owner = torch.searchsorted(ends, place, right=True)
    starts = (ends - counts).gather(1, owner.clamp(max=counts.shape[1] - 1))
    return owner, place - starts


def _at(values: Tensor, entry: Tensor) -> Tensor:
    """Graphs without a single bag entry leave nothing to read, and nothing that is read."""
    return values[entry] if len(values) else values.new_zeros(entry.shape)
