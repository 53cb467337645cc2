"""The short cycles of graphs, which mostly matter as a whole: rings of molecules, cliques and houses of networks.

Every edge that lies on a cycle of at most eight nodes has a unit: all nodes on the shortest cycles through it, so that
no choice between equal cycles has to be made. An edge that two rings share has both of them."""

from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints, pointers, ranges
from egocnn.data.collection import keep_nodes
from egocnn.data.graphs import Graphs

LONGEST = 8  # Nodes of a cycle that is still seen as one thing.
MOST_EDGES, MOST_SEEN = 20_000, 256
"""In a graph with more edges, and around an edge with more nodes within reach, no cycles are looked for: where nearly
everything lies on short cycles, they tell nothing apart."""
ENTRIES_AT_ONCE = 1 << 22  # Of adjacency rows that are gone through for all edges together.
UNSEEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """The units of some graphs."""

    node: Ints  # (M) their nodes, unit after unit
    unit: Ints  # (M) the unit of each

    @staticmethod
    def of(graphs: Graphs) -> "Cycles":
        """Look for them."""
        stays = _with_two_ways(graphs)
        core = keep_nodes(graphs, stays)
        u, v = core.edges[core.edges[:, 0] != core.edges[:, 1]].T
        # as many edges at a time as bounds the memory of one step from all that they have seen
        entries = np.cumsum(np.diff(core.indptr[core.node_ptr])[core.graph_of[u]])
        cuts = np.flatnonzero(np.diff(entries // ENTRIES_AT_ONCE)) + 1
        found = [_search(core, *ends) for ends in zip(np.split(u, cuts), np.split(v, cuts), strict=True)]
        node, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
        return Cycles(np.flatnonzero(stays)[node], np.repeat(np.arange(len(sizes)), sizes))

    def share(self, values: Floats, share: float) -> Floats:
        """(N) nodes on short cycles with this share of the mean over their units"""
        mean = np.bincount(self.unit, weights=values[self.node]) / np.bincount(self.unit)
        count = np.bincount(self.node, minlength=len(values))
        around = np.bincount(self.node, weights=mean[self.unit], minlength=len(values)) / np.maximum(count, 1)
        return np.where(count > 0, (1 - share) * values + share * around, values)


def _with_two_ways(graphs: Graphs) -> Bools:
    """(N) false for nodes that hang on a single edge, and so are on no cycle, and in graphs with too many edges"""
    degree = np.bincount(graphs.entry_node[graphs.entry_node != graphs.indices], minlength=graphs.n_nodes)
    degree[(np.diff(graphs.indptr[graphs.node_ptr]) > 2 * MOST_EDGES)[graphs.graph_of]] = 0
    leaves = np.flatnonzero(degree == 1)
    while len(leaves):
        degree[leaves] = 0
        others = graphs.indices[ranges(graphs.indptr[leaves], graphs.indptr[leaves + 1])]
        np.subtract.at(degree, others, 1)
        leaves = np.unique(others[degree[others] == 1])
    return degree > 1


def _search(graphs: Graphs, u: Ints, v: Ints) -> tuple[Ints, Ints]:
    """The nodes on the shortest cycles through each edge between u and v, edge after edge; and how many, where any are.

    Every edge has a place for every node of its graph. All edges together go from u, step by step and not over the edge
    itself, until they stand next to v, and then back by all ways of as few steps."""
    of_graph, indptr = graphs.graph_of[u], graphs.indptr
    starts = pointers(graphs.node_counts[of_graph])
    edge = np.repeat(np.arange(len(u)), np.diff(starts))  # of every place
    shift = starts[:-1] - graphs.node_ptr[of_graph]
    begin, end = u + shift, v + shift
    steps, is_on = np.full(len(edge), UNSEEN, np.int8), np.zeros(len(edge), bool)
    steps[begin] = 0

    def around(places: Ints, which: int) -> Ints:
        """The places next to these that as many steps lead to"""
        node, back = places - shift[edge[places]], shift[edge[places]]
        first, last = indptr[node], indptr[node + 1]
        near = graphs.indices[ranges(first, last)] + np.repeat(back, last - first)
        found: Ints = near[steps[near] == which]
        return found

    seen, is_open, front = np.ones(len(u), np.int64), np.ones(len(u), bool), begin
    for step in range(1, LONGEST - 1):
        there = around(front, UNSEEN)
        steps[there[there != end[edge[there]]]] = step
        front = np.flatnonzero(steps == step)
        seen += (new := np.bincount(edge[front], minlength=len(u)))
        is_open &= (new > 0) & (seen <= MOST_SEEN)
        if not is_open.any():
            break
        back, before = end[is_open], step
        while before and len(back := around(np.unique(back), before)):
            is_on[back] = is_on[begin[edge[back]]] = True
            before -= 1
        is_open &= ~is_on[begin]
        front = front[is_open[edge[front]]]
    is_on[end] = is_on[begin]
    found = np.flatnonzero(is_on)
    sizes = np.bincount(edge[found], minlength=len(u))
    return found - shift[edge[found]], sizes[sizes > 0]
