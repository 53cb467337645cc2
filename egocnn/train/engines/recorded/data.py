"""The prepared collections of all replicas -> one set of flat tensors that stays on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.encode.batch import EncodedGraphs, RestSteps

Parts = tuple[EncodedGraphs, EncodedGraphs]
"""the graphs to learn from, and those that choose the best epoch"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StackedData:
    """All graphs end to end; a replica knows its own by their numbers."""

    node_ptr: Tensor
    steps: Tensor
    """(N, K) from every node to its ranked neighbours, as a difference of node ids; 0: absent"""
    rest: RestSteps | None
    rest_back: RestSteps | None
    """the same pairs by the neighbour: from it to the node that has it beyond K"""
    bag_ptr: Tensor
    bag_rows: Tensor
    bag_weight: Tensor | None
    node_label: Tensor
    attributes: Tensor
    adjacency: Tensor | None
    rank: Tensor
    """(N) where each node stands in the ranking of its own graph"""
    target: Tensor

    def to(self, device: torch.device) -> StackedData:
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in parts.items()}
        return StackedData(**moved)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sizes:
    """(G) what every graph adds to a batch, where the host can read it."""

    nodes: Ints
    entries: Ints
    """of the bags"""
    rest: Ints
    """neighbours beyond K"""


def join(parts: Sequence[Parts]) -> tuple[StackedData, Sizes, list[tuple[Ints, Ints]]]:
    """The tensors of all parts, each collection once, and the numbers of every replica's graphs in them."""
    collections: dict[int, EncodedGraphs] = {id(each): each for pair in parts for each in pair}
    several = list(collections.values())
    first: dict[int, int] = {}
    total = 0
    for key, each in collections.items():
        first[key] = total
        total += len(each)
    rest = _rest([p.rest for p in several])
    resident = StackedData(
        node_ptr=_pointers([p.node_ptr for p in several]),
        steps=torch.cat([p.steps for p in several]),
        rest=rest,
        rest_back=None if rest is None else _turned(rest),
        bag_ptr=_pointers([p.bag_ptr for p in several]),
        bag_rows=torch.cat([p.bag_rows for p in several]),
        bag_weight=_optional([p.bag_weight for p in several]),
        node_label=torch.cat([p.node_label for p in several]),
        attributes=torch.cat([p.attributes for p in several]),
        adjacency=_optional([p.adjacency for p in several]),
        rank=torch.cat([_rank_in_graph(p) for p in several]),
        target=_whole([p.target for p in several]),
    )
    entries = resident.bag_ptr[resident.node_ptr]
    beyond = torch.zeros_like(entries) if rest is None else rest.ptr[resident.node_ptr]
    sizes = Sizes(nodes=resident.node_ptr.diff().numpy(), entries=entries.diff().numpy(), rest=beyond.diff().numpy())
    numbers = {key: torch.arange(len(each)).numpy() + first[key] for key, each in collections.items()}
    return resident, sizes, [(numbers[id(train)], numbers[id(validation)]) for train, validation in parts]


def _rest(several: Sequence[RestSteps | None]) -> RestSteps | None:
    present = [each for each in several if each is not None]
    if not present:
        return None
    return RestSteps(
        _pointers([each.ptr for each in present]),
        torch.cat([each.steps for each in present]),
        torch.cat([each.share for each in present]),
    )


def _turned(rest: RestSteps) -> RestSteps:
    """Sorted by the neighbour instead of the node."""
    counts = rest.ptr.diff()
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
    source = owner + rest.steps
    order = torch.argsort(source, stable=True)
    counts = torch.bincount(source, minlength=len(counts))
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return RestSteps(ptr, (owner - source)[order], rest.share)


def _pointers(several: Sequence[Tensor]) -> Tensor:
    """Each starts where the one before it ends."""
    counts = torch.cat([pointer.long().diff() for pointer in several])
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _optional(several: Sequence[Tensor | None]) -> Tensor | None:
    present = [each for each in several if each is not None]
    return torch.cat(present) if present else None


def _whole(several: Sequence[Tensor | None]) -> Tensor:
    present = _optional(several)
    assert present is not None, "graphs to learn from have targets"
    return present


def _rank_in_graph(prepared: EncodedGraphs) -> Tensor:
    counts = prepared.node_ptr.diff()
    graph_of = torch.repeat_interleave(torch.arange(len(counts)), counts)
    order = torch.argsort(prepared.place, stable=True)
    order = order[torch.argsort(graph_of[order], stable=True)]  # by graph, then by place
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - prepared.node_ptr[graph_of]
    return rank
