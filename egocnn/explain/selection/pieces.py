"""A part as the eye takes it: what lies between near pieces joins them, what hangs on and says little is taken off.

All nodes on the shortest ways between two pieces join, so that no choice between equal ways has to be made: two pieces
on opposite sides of a ring become the whole ring. Nodes that contribute little leave together with those that
contribute alike, and only where what is left hangs together as it did before."""

from itertools import combinations, pairwise

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs

BETWEEN = 2
"""Nodes that may lie between two pieces that are joined: as few as make nine structures in ten connected on the
choosing half of the truths (``results/truths_choices.json``)."""

LITTLE = 0.25
"""Share of the largest contribution in a part below which a node only stays to hold it together; chosen on the choosing
half of the truths (``results/truths_choices.json``)."""
MOST_TAKEN_OFF = 300  # Nodes that may contribute little: of more, no person looks at each.
ALIKE = 1e-9  # Relative difference up to which two contributions are the same.


def joined(graphs: Graphs, part: Ints) -> Ints:
    """Nodes of one graph, ascending, with those that lie between their pieces"""
    pieces = _pieces(graphs, set(part.tolist()))
    steps = [_steps(graphs, piece) for piece in pieces]
    found = set(part.tolist())
    for (here, piece), (there, _) in combinations(zip(steps, pieces, strict=True), 2):
        least = min((there[node] for node in piece if node in there), default=0)
        found |= {node for node in here.keys() & there.keys() if here[node] + there[node] == least}
    return np.array(sorted(found), np.int64)


def pared(graphs: Graphs, score: Floats, chosen: Bools) -> Bools:
    """The chosen nodes (N) without those of little contribution (N) that hold nothing together"""
    kept = chosen.copy()
    for first, last in pairwise(graphs.node_ptr.tolist()):
        part = first + np.flatnonzero(chosen[first:last])
        little = part[score[part] < LITTLE * score[part].max(initial=0.0)]
        if 0 < len(little) <= MOST_TAKEN_OFF:
            kept[part] = False
            kept[list(_without(graphs, score, set(part.tolist()), little))] = True
    return kept


def _without(graphs: Graphs, score: Floats, left: set[int], little: Ints) -> set[int]:
    """What is left of a part when nodes of little contribution leave it: all of them where the others hang together,
    else the least first, those alike together"""
    pieces, little = len(_pieces(graphs, set(left))), little[np.argsort(score[little], kind="stable")]
    differs = np.diff(score[little]) > ALIKE * np.abs(score[little][1:])
    waiting, tried = [little, *np.split(little, np.flatnonzero(differs) + 1)], list[Ints]()
    while len(waiting) != len(tried):  # what held a node that has left may leave after it
        waiting, tried = [], waiting
        for alike in tried:
            rest = left.difference(alike.tolist())
            if len(_pieces(graphs, set(rest))) <= pieces:
                left = rest
            else:
                waiting.append(alike)
    return left


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
