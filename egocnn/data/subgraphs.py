"""Cut graphs: Graphs, which nodes or edges to keep -> Graphs of what is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import EDGE_COLUMNS, NODE_COLUMNS


def keep_nodes(graphs: Graphs, kept: Bools) -> Graphs:
    """Every graph with the nodes (N) that are kept and the edges among them; a graph may be left without nodes."""
    return _cut(graphs, kept, kept[graphs.entry_node] & kept[graphs.indices])


def without_each_node(graphs: Graphs, nodes: Ints) -> Graphs:
    """For each of these nodes, a copy of its graph without it."""
    owner = graphs.graph_of[nodes]
    copies = graphs[owner]
    kept = np.ones(copies.n_nodes, bool)
    kept[copies.node_ptr[:-1] + nodes - graphs.node_ptr[owner]] = False
    return keep_nodes(copies, kept)


def without_each_edge(graphs: Graphs, edges: Ints) -> Graphs:
    """For each of these edges (e, 2), a copy of its graph without it."""
    owner = graphs.graph_of[edges[:, 0]]
    copies = graphs[owner]
    ends = edges - graphs.node_ptr[owner][:, None] + copies.node_ptr[:-1][:, None]
    of = copies.graph_of[copies.entry_node]
    low, high = np.minimum(copies.entry_node, copies.indices), np.maximum(copies.entry_node, copies.indices)
    gone = (low == ends.min(axis=1)[of]) & (high == ends.max(axis=1)[of])
    return _cut(copies, np.ones(copies.n_nodes, bool), ~gone)


def _cut(graphs: Graphs, kept: Bools, entries: Bools) -> Graphs:
    number = np.cumsum(kept) - 1
    counts = np.bincount(graphs.graph_of[kept], minlength=len(graphs))
    degree = np.bincount(graphs.entry_node[entries], minlength=graphs.n_nodes)[kept]

    def pick(values: Any, where: Bools) -> Any:
        return None if values is None else values[where]

    return replace(
        graphs,
        node_ptr=pointers(counts),
        indptr=pointers(degree),
        indices=number[graphs.indices[entries]].astype(graphs.indices.dtype),
        smiles=None,  # it says what the whole molecule was
        **{name: pick(getattr(graphs, name), kept) for name in NODE_COLUMNS},
        **{name: pick(getattr(graphs, name), entries) for name in EDGE_COLUMNS},
    )
