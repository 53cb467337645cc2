"""Pieces of a part that stand close together are one to the eye: nodes of a graph -> the same with what lies between.

All nodes on the shortest ways between two pieces join, so that no choice between equal ways has to be made: two pieces
on opposite sides of a ring become the whole ring."""

from itertools import combinations

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs

BETWEEN = 2
"""Nodes that may lie between two pieces that are joined: as few as make nine structures in ten connected on the
choosing half of the truths (``results/truths_choices.json``)."""


def joined(graphs: Graphs, part: Ints) -> Ints:
    """Nodes of one graph, ascending, with those that lie between their pieces"""
    pieces = _pieces(graphs, set(part.tolist()))
    steps = [_steps(graphs, piece) for piece in pieces]
    found = set(part.tolist())
    for (here, piece), (there, _) in combinations(zip(steps, pieces, strict=True), 2):
        least = min((there[node] for node in piece if node in there), default=0)
        found |= {node for node in here.keys() & there.keys() if here[node] + there[node] == least}
    return np.array(sorted(found), np.int64)


def _pieces(graphs: Graphs, left: set[int]) -> list[list[int]]:
    """The connected parts of what these nodes, which are used up, and the edges among them make up"""
    pieces = []
    while left:
        piece = [left.pop()]
        for node in piece:  # grows while it is walked
            piece += (near := left.intersection(_around(graphs, node)))
            left -= near
        pieces.append(piece)
    return pieces


def _steps(graphs: Graphs, piece: list[int]) -> dict[int, int]:
    """Nodes near a piece -> the steps from it"""
    found, last = dict.fromkeys(piece, 0), set(piece)
    for steps in range(1, BETWEEN + 2):
        last = {other for node in last for other in _around(graphs, node)}.difference(found)
        found.update(dict.fromkeys(last, steps))
    return found


def _around(graphs: Graphs, node: int) -> list[int]:
    around: list[int] = graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]].tolist()
    return around
