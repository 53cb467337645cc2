"""Cut graphs: Graphs, which graphs, nodes or edges to keep -> Graphs of what is left."""

from dataclasses import replace

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints, pointers, ranges
from egocnn.data.graphs import Graphs
from egocnn.data.schema import take_columns


def cut(graphs: Graphs, first: int, last: int) -> Graphs:
    """``graphs[first:last]`` without a look at every node: columns are views, only pointers and ids are made anew."""
    node, after = int(graphs.node_ptr[first]), int(graphs.node_ptr[last])
    indptr = graphs.indptr[node : after + 1]
    entry, end = int(indptr[0]), int(indptr[-1])
    return replace(
        graphs, node_ptr=graphs.node_ptr[first : last + 1] - node, indptr=indptr - entry,
        indices=graphs.indices[entry:end] - graphs.indices.dtype.type(node), names=graphs.names[first:last],
        smiles=None if graphs.smiles is None else graphs.smiles[first:last],
        **take_columns(graphs, nodes=slice(node, after), entries=slice(entry, end), chosen=slice(first, last)),
    )  # fmt: skip


def keep_nodes(graphs: Graphs, stays: Bools) -> Graphs:
    """Every graph with the nodes (N) that stay and the edges among them; a graph may be left without nodes."""
    return _cut(graphs, stays, stays[graphs.entry_node] & stays[graphs.indices])


def without_each_node(graphs: Graphs, nodes: Ints) -> Graphs:
    """For each of these nodes, a copy of its graph without it."""
    owner = graphs.graph_of[nodes]
    copies = graphs[owner]
    stays = np.ones(copies.n_nodes, bool)
    stays[copies.node_ptr[:-1] + nodes - graphs.node_ptr[owner]] = False
    return keep_nodes(copies, stays)


def without_each_edge(graphs: Graphs, edges: Ints) -> Graphs:
    """For each of these edges (e, 2), a copy of its graph without it."""
    owner = graphs.graph_of[edges[:, 0]]
    copies = graphs[owner]
    ends = edges - graphs.node_ptr[owner][:, None] + copies.node_ptr[:-1][:, None]
    of = copies.graph_of[copies.entry_node]
    low, high = np.minimum(copies.entry_node, copies.indices), np.maximum(copies.entry_node, copies.indices)
    gone = (low == ends.min(axis=1)[of]) & (high == ends.max(axis=1)[of])
    return _cut(copies, np.ones(copies.n_nodes, bool), ~gone)


def surroundings(indptr: Ints, indices: Ints, first: Ints, weight: Floats, most: int) -> Ints:
    """These nodes and those around them, nearer ones before others and of equally near ones the heavier (N); ``most``
    in all, ascending. Where all that is joined to them has been found, it goes on from the heaviest node left."""
    found = np.zeros(len(weight), bool)
    left = iter(np.argsort(-weight, kind="stable"))
    near, missing = first, min(most, len(weight))
    while missing:
        if not len(near):
            near = np.array([next(node for node in left if not found[node])])
        new = near[np.argsort(-weight[near], kind="stable")][:missing]
        found[new] = True
        missing -= len(new)
        near = np.unique(indices[ranges(indptr[new], indptr[new + 1])])
        near = near[~found[near]]
    return np.flatnonzero(found)


def _cut(graphs: Graphs, stays: Bools, entries: Bools) -> Graphs:
    number = np.cumsum(stays) - 1
    counts = np.bincount(graphs.graph_of[stays], minlength=len(graphs))
    degree = np.bincount(graphs.entry_node[entries], minlength=graphs.n_nodes)[stays]
    return replace(
        graphs,
        node_ptr=pointers(counts),
        indptr=pointers(degree),
        indices=number[graphs.indices[entries]].astype(graphs.indices.dtype),
        smiles=None,  # it says what the whole molecule was
        **take_columns(graphs, nodes=stays, entries=entries),
    )
