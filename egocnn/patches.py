"""What Patchy-San reads around every node: Graphs + ranked neighbours -> rows of an embedding table to sum up.

Around node n, slot 0 is n itself and slot j its j-th ranked neighbour. The labelled adjacency tensor of these P
slots is almost all zeros, so instead of the tensor we keep, for every node, the numbers of its non-zero entries:
one number for each (slot i, slot j, edge label) with an edge between the slots, i <= j, and one for each (slot,
node label). A linear filter over the tensor is then the sum of the table rows with these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egocnn.arrays import Floats, Ints, pointers
from egocnn.graphs import Graphs

NODES_AT_ONCE = 1 << 15
"""Nodes whose pairs of slots are looked up together: bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchShape:
    """How the rows of the embedding table are numbered."""

    slots: int
    node_labels: int
    """0 where nodes have none"""
    edge_labels: int
    """0 where edges have none: every edge then counts as one and the same"""

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Slots i <= j of every pair; the graphs are undirected, so (j, i) would say the same again."""
        first, second = np.triu_indices(self.slots)
        return first, second

    @property
    def edge_rows(self) -> int:
        return self.slots * (self.slots + 1) // 2 * max(self.edge_labels, 1)

    @property
    def rows(self) -> int:
        return self.edge_rows + self.slots * self.node_labels


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """The table rows of node n are ``rows[ptr[n]:ptr[n + 1]]``."""

    ptr: Ints
    rows: Ints
    weight: Floats | None
    """the edge's weight where edges have weights (1 for node labels)"""


def find_patches(graphs: Graphs, neighbours: Ints, shape: PatchShape) -> Patches:
    """neighbours (N, at least P - 1) -> the table rows of every node."""
    portions = list(_portions(graphs, neighbours, shape))
    counts = np.concatenate([count for count, _, _ in portions])
    rows = np.concatenate([rows for _, rows, _ in portions])
    weighted = graphs.edge_weight is not None
    return Patches(pointers(counts), rows, np.concatenate([w for _, _, w in portions]) if weighted else None)


def _portions(graphs: Graphs, neighbours: Ints, shape: PatchShape) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Rows per node, the rows, and their weights, for a few nodes after the other."""
    keys = graphs.entry_node.astype(np.int64) * graphs.n_nodes + graphs.indices  # ascending, as rows are sorted
    itself = np.arange(graphs.n_nodes, dtype=neighbours.dtype)[:, None]
    for first in range(0, max(graphs.n_nodes, 1), NODES_AT_ONCE):
        here = slice(first, first + NODES_AT_ONCE)
        slots = np.concatenate([itself[here], neighbours[here, : shape.slots - 1]], axis=1)  # (n, P)
        if slots.shape[1] < shape.slots:
            slots = np.pad(slots, ((0, 0), (0, shape.slots - slots.shape[1])), constant_values=-1)
        edge_rows, weight = _edge_rows(graphs, keys, slots, shape)
        rows = np.concatenate([edge_rows, _label_rows(graphs, slots, shape)], axis=1)
        weight = np.pad(weight, ((0, 0), (0, rows.shape[1] - weight.shape[1])), constant_values=1)
        present = rows >= 0
        yield present.sum(axis=1), rows[present], weight[present]


def _edge_rows(graphs: Graphs, keys: Ints, slots: Ints, shape: PatchShape) -> tuple[Ints, Floats]:
    """(n, pairs) the row of every pair of slots with an edge, -1 elsewhere, and the edges' weights"""
    i, j = shape.pairs
    a, b = slots[:, i].astype(np.int64), slots[:, j]
    rows = np.full(a.shape, -1, np.int32)
    weight = np.ones(a.shape if graphs.edge_weight is not None else (len(a), 0), np.float32)
    asked = np.nonzero((a >= 0) & (b >= 0))
    wanted = a[asked] * graphs.n_nodes + b[asked]
    entry = np.searchsorted(keys, wanted)
    found = entry < len(keys)
    found[found] = keys[entry[found]] == wanted[found]
    node, pair = asked[0][found], asked[1][found]
    entry = entry[found]
    if graphs.edge_label is None or shape.edge_labels == 0:
        rows[node, pair] = pair * max(shape.edge_labels, 1)
    else:
        label = graphs.edge_label[entry]
        rows[node, pair] = np.where(label >= 0, pair * shape.edge_labels + label, -1)
    if graphs.edge_weight is not None:
        weight[node, pair] = graphs.edge_weight[entry]
    return rows, weight


def _label_rows(graphs: Graphs, slots: Ints, shape: PatchShape) -> Ints:
    """(n, P) the row of every slot's node label, -1 where there is no node or its label was never seen"""
    if graphs.node_label is None or shape.node_labels == 0:
        return np.empty((len(slots), 0), np.int32)
    label = np.where(slots >= 0, graphs.node_label[slots], -1)
    rows = shape.edge_rows + np.arange(shape.slots) * shape.node_labels + label
    return np.where(label >= 0, rows, -1).astype(np.int32)
