"""Graphs + ranked neighbours (N, K) -> the neighbours that did not fit into the K places, node by node."""

from __future__ import annotations

import numpy as np

from egocnn.data.arrays import Ints, pointers
from egocnn.data.graphs import Graphs


def find_rest(graphs: Graphs, table: Ints) -> tuple[Ints, Ints]:
    """The neighbours of node n that row n of the table lacks are ``neighbours[ptr[n]:ptr[n + 1]]``."""
    owner, neighbour = find_beyond(graphs, table)
    return pointers(np.bincount(owner, minlength=graphs.n_nodes)), neighbour


def find_beyond(graphs: Graphs, near: Ints, first: int = 0) -> tuple[Ints, Ints]:
    """Neighbours that the table (n, K) of the n nodes from ``first`` on lacks: whose they are, from 0, and which.

    A self-loop makes no node a neighbour of its own.
    """
    pointer = graphs.indptr[first : first + len(near) + 1]
    degree = np.diff(pointer)
    neighbour = graphs.indices[int(pointer[0]) : int(pointer[-1])]
    owner = np.repeat(np.arange(len(near)), degree)
    wide = np.flatnonzero((degree > near.shape[1])[owner] & (neighbour != owner + first))  # only these can lack any
    owner, neighbour = owner[wide], neighbour[wide].astype(np.int64)
    row, rank = np.nonzero(near >= 0)
    ranked = row * np.int64(graphs.n_nodes) + near[row, rank]
    lacking = ~np.isin(owner * np.int64(graphs.n_nodes) + neighbour, ranked)
    return owner[lacking], neighbour[lacking]
