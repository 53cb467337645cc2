"""B graphs of each of R networks as one batch of fixed shape: padded rows, and what each layer computes with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from egocnn.nn.dense import factor_type
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.pool import first_of_each, pool
from egocnn.nn.readout import counted
from egocnn.nn.rows import Learning, PaddedRows
from egocnn.nn.stacked.patches import StackedPatchShape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StackedBatch:
    """B graphs of every replica, padded to M nodes and E bag entries; see :mod:`egocnn.nn.batch` for the methods."""

    table: Tensor  # (R, M, K) ranked neighbours, counted in every replica by itself; -1 where absent
    present: Tensor  # (R, M) false for padding
    node: Tensor  # (R, M) its number in the collection that the batch was cut from; any for padding
    graph: Tensor  # (R, B) the same for graphs; any where no graph was chosen
    graph_of: Tensor  # (R, M) in 0..B-1; B for padding
    node_counts: Tensor  # (R, B + 1) nodes of every graph, and the padding
    rows: Tensor  # (R, E) rows of Patchy-San's table
    owner: Tensor  # (R, E) the node that sums up the row; M for padding
    weight: Tensor | None  # (R, E)
    node_label: Tensor  # (R, M); -1 for padding, and for labels that are not known
    attributes: Tensor  # (R, M, A), 0 for padding
    rank: Tensor  # (R, M) where each node stands in the ranking of its own graph
    exists: Tensor  # (R, B) false where no graph was chosen
    target: Tensor  # (R, B)
    learning: Learning | None = None  # how norms and dropout treat the step; None in evaluation
    presence: Tensor | None = None  # (R, M) how far each node is there, 0 for padding; None: all of them are
    _ranked: dict[int, Neighbours] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return self.exists.shape[1]

    @property
    def keeps_layers(self) -> bool:
        return True

    @property
    def nodes(self) -> PaddedRows:
        return PaddedRows(self.present if self.presence is None else self.presence > 0, self.learning)

    @property
    def graphs(self) -> PaddedRows:
        return PaddedRows(self.exists, None if self.learning is None else self.learning.of_graphs(self.exists))

    def at_presence(self, presence: Tensor) -> Self:
        """The same graphs with nodes that are present to a degree (R, M), 0 for padding."""
        return replace(self, presence=presence, attributes=self.attributes * presence[..., None])

    def ranked(self, k: int) -> Neighbours:
        """The first k neighbours of every node."""
        if k not in self._ranked:
            self._ranked[k] = Neighbours.of(self.table[..., :k])
        return self._ranked[k]

    def as_embedding(self, values: Tensor) -> Tensor:
        return values.to(factor_type(self.attributes))

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: StackedPatchShape) -> Tensor:
        """Patchy-San's sums: table (R, rows, D), attributes (R, P, A, D), bias (R, D) -> (R, M, D)"""
        h = torch.baddbmm(bias[:, None], self._entries(table, shape), table)
        if attributes.numel():
            h = torch.baddbmm(h, self._slots(attributes.shape[1]).to(h.dtype), attributes.flatten(1, 2))
        return h

    def _entries(self, table: Tensor, shape: StackedPatchShape) -> Tensor:
        """(R, M, rows) what each node reads of the table.

        A matrix product with this matrix is the sum of the rows named, forward and backward, at the speed of the
        matrix units and without a sort or an atomic addition. A node names no row twice, so nothing is lost in
        writing the ones.
        """
        (R, M), rows = self.present.shape, table.shape[1]
        replica = torch.arange(R, device=table.device)[:, None]
        place = torch.where(self.owner < M, (replica * M + self.owner) * rows + self.rows, R * M * rows)
        flat = torch.zeros(R * M * rows + 1, device=place.device, dtype=factor_type(table))
        weight = self._entry_weight(shape)
        if weight is None:
            flat.scatter_(0, place.flatten(), 1.0)
        else:
            flat.scatter_(0, place.flatten(), weight.flatten().to(flat.dtype))
        return flat[:-1].view(R, M, rows)

    def _entry_weight(self, shape: StackedPatchShape) -> Tensor | None:
        """(R, E) an entry is as present as the node, or both ends of the edge, that it describes; None: all count 1"""
        if self.presence is None:
            return self.weight
        M = self.present.shape[1]
        owner = self.owner.clamp(max=M - 1)
        # a row that only fills a place may come from the table of another replica
        slots = shape.ends(torch.where(self.owner < M, self.rows, 0).long())
        u, v = (torch.where(slot > 0, self._neighbour(owner, slot), owner) for slot in slots)
        of_u, of_v = (self._of_nodes(self.presence, node) for node in (u, v))
        there = torch.where(u == v, of_u, of_u * of_v)
        return there if self.weight is None else self.weight * there

    def _neighbour(self, owner: Tensor, slot: Tensor) -> Tensor:
        """(R, E) the node in this slot of the owner's; any for slot 0, which is the owner itself"""
        K = self.table.shape[2]
        return self.table.flatten(1).gather(1, owner * K + (slot - 1).clamp(min=0)).long()

    def _of_nodes(self, values: Tensor, nodes: Tensor) -> Tensor:
        """(R, M), nodes (R, ...) -> the values of these nodes, 0 where absent"""
        found = values.gather(1, nodes.clamp(min=0).long().flatten(1)).view(nodes.shape)
        return torch.where(nodes >= 0, found, 0)

    def _slots(self, slots: int) -> Tensor:
        """(R, M, P A) the attributes of a node and of its first P - 1 neighbours, 0 where absent"""
        R, M = self.present.shape
        table = self.table[..., : slots - 1].long()
        replica = torch.arange(R, device=table.device)[:, None, None] * M
        neighbours = self.attributes.flatten(0, 1)[replica + table.clamp(min=0)]
        near = torch.where((table >= 0)[..., None], neighbours, 0)
        return torch.cat([self.attributes[:, :, None], near], dim=2).flatten(2)

    def pool(self, h: Tensor, kind: str) -> Tensor:
        """(R, M, D) -> (R, B, D for each kind)"""
        return pool(h, self.node_counts[:, :-1].contiguous(), self.graph_of, kind, self.presence)

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        """(R, M, D) -> (R, B, nodes D)"""
        return first_of_each(h, self.present, self.graph_of, self.rank, self.exists.shape[1], nodes)

    def inputs_of(self, columns: int) -> Tensor:
        """(R, M, columns) what nodes add to the counts of the inputs"""
        inputs = counted(self.node_label, self.attributes, columns)
        return inputs if self.presence is None else inputs * self.presence[..., None].to(inputs)
