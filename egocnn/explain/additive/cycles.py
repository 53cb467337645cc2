"""The short cycles of graphs, which mostly matter as a whole: rings of molecules, cliques and houses of networks.

Every edge that lies on a cycle of at most eight nodes has a unit: all nodes on the shortest cycles through it, so that
no choice between equal cycles has to be made. An edge that two rings share has both of them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs

LONGEST = 8  # Nodes of a cycle that is still seen as one thing.
MOST_EDGES, MOST_SEEN = 20_000, 256
"""In a graph with more edges, and around an edge with more nodes within reach, no cycles are looked for: where nearly
everything lies on short cycles, they tell nothing apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """The units of some graphs."""

    node: Ints  # (M) their nodes, unit after unit
    unit: Ints  # (M) the unit of each

    @staticmethod
    def of(graphs: Graphs) -> "Cycles":
        """Look for them."""
        units = [unit for start, stop in pairwise(graphs.node_ptr.tolist()) for unit in _units(graphs, start, stop)]
        sizes = np.array([len(unit) for unit in units], np.int64)
        node = np.fromiter((node for unit in units for node in unit), np.int64, int(sizes.sum()))
        return Cycles(node, np.repeat(np.arange(len(units)), sizes))

    def share(self, values: Floats, share: float) -> Floats:
        """(N) nodes on short cycles with this share of the mean over their units"""
        mean = np.bincount(self.unit, weights=values[self.node]) / np.bincount(self.unit)
        count = np.bincount(self.node, minlength=len(values))
        around = np.bincount(self.node, weights=mean[self.unit], minlength=len(values)) / np.maximum(count, 1)
        return np.where(count > 0, (1 - share) * values + share * around, values)


def _units(graphs: Graphs, start: int, stop: int) -> list[list[int]]:
    """One for every edge on a short cycle of the graph with these nodes"""
    ends = graphs.indptr[start : stop + 1].tolist()
    if ends[-1] - ends[0] > 2 * MOST_EDGES:
        return []
    joined = {n: set(graphs.indices[a:b].tolist()) - {n} for n, (a, b) in enumerate(pairwise(ends), start)}
    leaves = [node for node, others in joined.items() if len(others) < 2]
    while leaves:  # what hangs on a single edge is on no cycle
        node = leaves.pop()
        for other in joined.pop(node, ()):
            joined[other].remove(node)
            if len(joined[other]) < 2:
                leaves.append(other)
    edges = ((u, v) for u, others in joined.items() for v in others if u < v)
    return [unit for u, v in edges if (unit := _shortest_cycles(joined, u, v))]


def _shortest_cycles(joined: dict[int, set[int]], start: int, end: int) -> list[int]:
    """The nodes on the shortest cycles through the edge between these two; none where they are too long"""
    seen, layers = {start}, [joined[start] - {end}]  # the nodes one step from the start, two steps, ...
    while end not in layers[-1]:
        seen |= layers[-1]
        if not layers[-1] or len(layers) == LONGEST - 1 or len(seen) > MOST_SEEN:
            return []
        layers.append(set().union(*(joined[node] for node in layers[-1])) - seen)
    back, unit = {end}, [start, end]
    for layer in layers[-2::-1]:  # of every layer the nodes from which the end is reached in as few steps
        back = layer.intersection(set().union(*(joined[node] for node in back)))
        unit += back
    return sorted(unit)
