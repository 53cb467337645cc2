"""The nodes nearest to every node: Graphs, an order of their nodes -> (N, K) table of node ids, -1 where absent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from egocnn.data.arrays import Ints, starts
from egocnn.data.graphs import Graphs
from egocnn.encode.ranking import Order, Ranking

PAIRS_AT_ONCE = 1 << 22  # Candidate pairs expanded together: bounds the memory.


def nearest_nodes(graphs: Graphs, order: Order, k: int, *, hops: int) -> Ints:
    """Fewer hops first, ``hops`` at most, then by the order; of adjacent nodes those with heavier edges first."""
    table = Ranking((), ()).neighbours(graphs, k, order=order)
    if hops > 1:
        _fill_up(table, graphs, order, hops)
    return table


def _fill_up(table: Ints, graphs: Graphs, order: Order, hops: int) -> None:
    """Write nodes 2 to ``hops`` hops away into the free ranks of the table.

    A row with free ranks names all the nodes that are nearer. Of the neighbours of a node among them, it names some
    already and needs some more, K at most together: to look at the first K is enough, however many there are.
    """
    K = table.shape[1]
    nearest = Ranking((), ()).neighbours(replace(graphs, edge_weight=None, edge_label=None), K, order=order)
    unfilled = np.flatnonzero(table[:, -1] < 0)
    at_once = max(1, PAIRS_AT_ONCE // K**2)
    for start in range(0, len(unfilled), at_once):
        rows = unfilled[start : start + at_once]
        farthest = table[rows]
        for _ in range(2, hops + 1):
            known = np.concatenate([rows[:, None], table[rows]], axis=1)
            row, node = _new_nodes(farthest, nearest, known, order)
            rank = (table[rows] >= 0).sum(axis=1)[row] + _rank_in_row(row)
            fits = rank < K
            row, node, rank = row[fits], node[fits], rank[fits]
            table[rows[row], rank] = node
            farthest = np.full_like(farthest, -1)
            farthest[row, rank] = node
            farthest[table[rows, -1] >= 0] = -1


def _new_nodes(farthest: Ints, nearest: Ints, known: Ints, order: Order) -> tuple[Ints, Ints]:
    """Neighbours of the farthest nodes of every row that the row does not know: row numbers and nodes, in order."""
    row, rank = np.nonzero(farthest >= 0)
    reached = nearest[farthest[row, rank]]
    at, rank = np.nonzero(reached >= 0)
    found = np.sort(row[at] * len(nearest) + order.place[reached[at, rank]])
    found = found[starts(found)]
    row, rank = np.nonzero(known >= 0)
    old = np.sort(row * len(nearest) + order.place[known[row, rank]])
    found = found[old[np.minimum(np.searchsorted(old, found), len(old) - 1)] != found]
    row, place = np.divmod(found, len(nearest))
    return row, order.nodes[place]


def _rank_in_row(row: Ints) -> Ints:
    """0, 1, 2, ... within every run of equal numbers."""
    first = starts(row)
    return np.arange(len(row)) - np.repeat(first, np.diff(first, append=len(row)))
