"""Graphs without node labels -> the same, every node told in how many triangles it stands.

Every edge points from the node with fewer neighbours to the one with more. Then no node, not even a hub, has many edges
that leave it, and a triangle is found from one of its corners alone.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs

PATHS_AT_ONCE = 1 << 24  # Paths of two edges that are looked at together: bounds the memory.


def with_triangles(graphs: Graphs) -> Graphs:
    """Two attributes more: log triangles, and the share of pairs of neighbours that are joined."""
    triangles, degree = count_triangles(graphs), np.diff(graphs.indptr)
    share = triangles / np.maximum(degree * (degree - 1) / 2, 1)
    attributes = np.stack([np.log1p(triangles), share], axis=1).astype(np.float32)
    own = graphs.node_attr
    return graphs.replace(node_attr=attributes if own is None else np.concatenate([own, attributes], axis=1))


def count_triangles(graphs: Graphs) -> Ints:
    """Of every node; self-loops are no edges here."""
    degree = np.diff(graphs.indptr)
    node, neighbour = graphs.entry_node, graphs.indices
    upwards = (degree[node] < degree[neighbour]) | ((degree[node] == degree[neighbour]) & (node < neighbour))
    shape = (graphs.n_nodes, graphs.n_nodes)
    edges = csr_matrix((np.ones(int(upwards.sum()), np.int64), (node[upwards], neighbour[upwards])), shape=shape)
    both_ways = (edges + edges.T).tocsr()
    found, highest_twice = np.zeros((2, graphs.n_nodes), np.int64)
    for rows in _portions(both_ways, np.diff(edges.indptr)):
        # along an edge to the highest corner: by way of the middle one from the lowest, and the other way round
        triangles = edges[rows].multiply(both_ways[rows] @ edges)
        found[rows] = np.asarray(triangles.sum(1)).ravel()
        highest_twice += np.asarray(triangles.sum(0)).ravel()
    return found + highest_twice // 2


def _portions(both_ways: csr_matrix, leaving: Ints) -> list[slice]:
    """Rows that begin about as many paths of two edges as may be looked at together, one row at least."""
    paths = np.concatenate([[0], np.cumsum(leaving[both_ways.indices])])[both_ways.indptr]
    portion = paths[:-1] // PATHS_AT_ONCE
    first = np.flatnonzero(np.diff(portion, prepend=-1)).tolist()
    return [slice(a, b) for a, b in pairwise([*first, len(portion)])]
