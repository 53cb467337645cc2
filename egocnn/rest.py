"""Graphs + ranked neighbours (N, K) -> the neighbours that did not fit into the K places, node by node."""

from __future__ import annotations

import numpy as np

from egocnn.arrays import Ints, pointers
from egocnn.graphs import Graphs


def find_rest(graphs: Graphs, table: Ints) -> tuple[Ints, Ints]:
    """The neighbours of node n that row n of the table lacks are ``neighbours[ptr[n]:ptr[n + 1]]``.

    A self-loop makes no node a neighbour of its own.
    """
    wide = graphs.degree > table.shape[1]  # only these can have any
    entries = np.flatnonzero(wide[graphs.entry_node] & (graphs.entry_node != graphs.indices))
    node, neighbour = graphs.entry_node[entries].astype(np.int64), graphs.indices[entries].astype(np.int64)
    ranked = table[wide]
    owner, _ = np.nonzero(ranked >= 0)
    kept = np.flatnonzero(wide)[owner] * np.int64(graphs.n_nodes) + ranked[ranked >= 0]
    beyond = ~np.isin(node * np.int64(graphs.n_nodes) + neighbour, kept)
    return pointers(np.bincount(node[beyond], minlength=graphs.n_nodes)), neighbour[beyond]
