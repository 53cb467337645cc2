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

from egocnn.data.arrays import Floats, Ints, pointers, ranges
from egocnn.data.graphs import Graphs
from egocnn.encode.edge_table import EdgeTable
from egocnn.nn.embed import PatchShape

NODES_AT_ONCE = 1 << 13  # Nodes whose pairs of slots are looked up together: bounds the memory.


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """The table rows of node n are ``rows[ptr[n]:ptr[n + 1]]``."""

    ptr: Ints
    rows: Ints
    weight: Floats | None  # the edge's weight where edges have weights (1 for node labels)


def find_patches(graphs: Graphs, neighbours: Ints, shape: PatchShape) -> Patches:
    """neighbours (N, at least P - 1) -> the table rows of every node."""
    portions = list(patch_portions(graphs, neighbours, shape))
    counts = np.concatenate([count for count, _, _ in portions])
    rows = np.concatenate([rows for _, rows, _ in portions])
    weighted = graphs.edge_weight is not None
    return Patches(pointers(counts), rows, np.concatenate([w for _, _, w in portions]) if weighted else None)


def patch_portions(graphs: Graphs, neighbours: Ints, shape: PatchShape) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Rows per node, the rows, and their weights, for a few nodes after the other."""
    edges = EdgeTable(graphs)
    itself = np.arange(graphs.n_nodes, dtype=neighbours.dtype)[:, None]
    for first in range(0, max(graphs.n_nodes, 1), NODES_AT_ONCE):
        here = slice(first, first + NODES_AT_ONCE)
        slots = np.concatenate([itself[here], neighbours[here, : shape.slots - 1]], axis=1)  # (n, P at most)
        joined, edge_rows, weight = _edge_rows(graphs, edges, slots, shape)
        labelled, label_rows = _label_rows(graphs, slots, shape)
        node, rows = np.concatenate([joined, labelled]), np.concatenate([edge_rows, label_rows])
        weight = np.concatenate([weight, np.ones(len(labelled), np.float32)])
        by = np.argsort(node, kind="stable")  # two ascending runs, which a stable sort merges quickly
        yield np.bincount(node, minlength=len(slots)), rows[by].astype(np.int32), weight[by]


def _edge_rows(graphs: Graphs, edges: EdgeTable, slots: Ints, shape: PatchShape) -> tuple[Ints, Ints, Floats]:
    """For every pair of slots with an edge: the node it is around, counted from 0, its row, and the edge's weight"""
    i, j = shape.pairs
    node, pair = _filled_pairs(slots, shape)
    entry = edges.find(slots[node, i[pair]], slots[node, j[pair]])
    joined = np.flatnonzero(entry >= 0)
    node, pair, entry = node[joined], pair[joined], entry[joined]
    weight = np.ones(len(entry), np.float32) if graphs.edge_weight is None else graphs.edge_weight[entry]
    if graphs.edge_label is None or shape.edge_labels == 0:
        return node, pair * max(shape.edge_labels, 1), weight
    label = graphs.edge_label[entry]
    known = np.flatnonzero(label >= 0)
    return node[known], (pair * shape.edge_labels + label)[known], weight[known]


def _filled_pairs(slots: Ints, shape: PatchShape) -> tuple[Ints, Ints]:
    """Every pair of slots that both hold a node: which node they are around, and the number of the pair."""
    _, j = shape.pairs
    numbers = [np.flatnonzero(j < filled) for filled in range(shape.slots + 1)]
    first = pointers(np.array([len(pairs) for pairs in numbers]))
    filled = (slots >= 0).sum(axis=1)
    node = np.repeat(np.arange(len(slots)), np.diff(first)[filled])
    return node, np.concatenate(numbers)[ranges(first[filled], first[filled + 1])]


def _label_rows(graphs: Graphs, slots: Ints, shape: PatchShape) -> tuple[Ints, Ints]:
    """For every slot whose node has a known label: the node it is around, counted from 0, and its row"""
    if graphs.node_label is None or shape.node_labels == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    label = np.where(slots >= 0, graphs.node_label[slots], -1)
    node, slot = np.nonzero(label >= 0)
    return node, shape.edge_rows + slot * shape.node_labels + label[node, slot]
