"""A prepared collection in flat tensors, and any choice of its graphs -> one batch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.batch import Bags, Batch
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.beyond import Rest


@dataclass(frozen=True, slots=True, eq=False)
class RestSteps:
    """Neighbours beyond K of every node, end to end."""

    ptr: Tensor
    """(N + 1)"""
    steps: Tensor
    """from the node to the neighbour, as a difference of node ids"""
    share: Tensor
    """(N) factor of the neighbours' sum: 1, or 1 over their number for the mean"""

    def to(self, device: torch.device) -> RestSteps:
        return RestSteps(self.ptr.to(device), self.steps.to(device), self.share.to(device))

    def batch(self, nodes: Tensor) -> Rest:
        """Of these nodes, which are now numbered from 0."""
        counts = self.ptr[nodes + 1] - self.ptr[nodes]
        owner = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), counts)
        return Rest(owner, owner + self.steps[_ranges(self.ptr[nodes], counts)], self.share[nodes])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedGraphs:
    """A whole collection as flat tensors; :meth:`batch` cuts graphs out of it."""

    node_ptr: Tensor
    steps: Tensor
    """(N, W) from every node to its ranked neighbours, as a difference of node ids; 0: absent"""
    rest: RestSteps | None
    bag_ptr: Tensor
    bag_rows: Tensor
    bag_weight: Tensor | None
    node_label: Tensor
    attributes: Tensor
    adjacency: Tensor | None
    """(N, W), only where it says more than ``steps``: edges have weights, or neighbours may be several hops away"""
    place: Tensor
    target: Tensor | None

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def megabytes(self) -> float:
        """What the tensors take together."""
        tensors = [t for t in self._parts().values() if isinstance(t, Tensor)]
        tensors += [] if self.rest is None else [self.rest.ptr, self.rest.steps, self.rest.share]
        return sum(t.numel() * t.element_size() for t in tensors) / 1e6

    def in_memory(self) -> EncodedGraphs:
        """Itself."""
        return self

    def to(self, device: torch.device) -> EncodedGraphs:
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in self._parts().items()}
        return EncodedGraphs(**moved)

    def _parts(self) -> dict[str, Tensor | RestSteps | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def batch(self, chosen: Tensor) -> Batch:
        """The graphs with these numbers, in this order."""
        counts = self.node_ptr[chosen + 1] - self.node_ptr[chosen]
        nodes = _ranges(self.node_ptr[chosen], counts)
        steps = self.steps[nodes]
        position = torch.arange(len(nodes), device=nodes.device)
        table = torch.where(steps == 0, -1, position[:, None] + steps)
        bag_counts = self.bag_ptr[nodes + 1] - self.bag_ptr[nodes]
        entries = _ranges(self.bag_ptr[nodes], bag_counts)
        return Batch(
            neighbours=Neighbours.of(table),
            rest=None if self.rest is None else self.rest.batch(nodes),
            bags=Bags(
                rows=self.bag_rows[entries],
                offsets=(bag_counts.cumsum(0) - bag_counts).to(self.bag_rows.dtype),
                weight=None if self.bag_weight is None else self.bag_weight[entries],
            ),
            node_label=self.node_label[nodes],
            attributes=self.attributes[nodes],
            adjacency=(table >= 0).float() if self.adjacency is None else self.adjacency[nodes],
            place=self.place[nodes],
            graph_of=torch.repeat_interleave(torch.arange(len(chosen), device=nodes.device), counts),
            node_counts=counts,
            target=None if self.target is None else self.target[chosen],
        )


def _ranges(first: Tensor, counts: Tensor) -> Tensor:
    """All integers of first[0]..first[0]+counts[0]-1, then of the next, end to end."""
    shift = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    return torch.arange(len(shift), device=first.device) + shift
