"""The encoded graphs of all replicas -> one set of flat tensors on the device, and batches of fixed shape cut from it.
The nodes of every replica fill the first of M places, its bag entries the first of E; what is left over is padding. A
batch is arithmetic on tensors of fixed shapes, as CUDA graphs require: nothing is read back."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn.stacked import StackedBatch

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
