"""Look edges up by their ends: Graphs, pairs of nodes -> the adjacency entries that join them, -1 where none does.

A hash table in flat arrays. To search sorted entries takes a dozen cache misses a pair where a graph has millions of
edges; this takes two or three, however large the graph.
"""

from __future__ import annotations

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs

FACTOR = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: multiples scatter consecutive numbers evenly
SLOTS_PER_EDGE = 2  # at least; more slots mean fewer edges that compete for one, and more memory
EDGES_AT_ONCE = 1 << 17  # edges put in their slots together: bounds the memory


class EdgeTable:
    """Every edge once, u <= v, in the slot that its hash names; those that find it taken move on to the next table."""

    def __init__(self, graphs: Graphs) -> None:
        node = graphs.entry_node
        self.entry = np.flatnonzero(node <= graphs.indices)
        self.ends = node[self.entry], graphs.indices[self.entry]
        self.tables: list[Ints] = []
        unplaced: Ints = np.arange(len(self.entry))
        unplaced = unplaced.astype(np.int32) if len(unplaced) < 2**31 else unplaced
        while len(unplaced):
            unplaced = self._add_table(unplaced)

    def find(self, u: Ints, v: Ints) -> Ints:
        """(n) an adjacency entry that joins u (n) and v (n), in the row of the smaller; -1 where they are not joined"""
        u, v = np.minimum(u, v), np.maximum(u, v)
        joined = np.full(len(u), -1, np.int64)
        open_pairs = np.arange(len(u))
        for number, table in enumerate(self.tables):
            edge = table[self._slots(number, u, v)]
            taken = np.flatnonzero(edge >= 0)  # had the edge been there, it would have found a free slot free
            edge, u, v, open_pairs = edge[taken], u[taken], v[taken], open_pairs[taken]
            is_it = (self.ends[0][edge] == u) & (self.ends[1][edge] == v)
            joined[open_pairs[is_it]] = self.entry[edge[is_it]]
            u, v, open_pairs = u[~is_it], v[~is_it], open_pairs[~is_it]
        return joined

    def _add_table(self, edges: Ints) -> Ints:
        """Put edges into a table of their own; returns those whose slot another has taken."""
        table = np.full(1 << (SLOTS_PER_EDGE * len(edges)).bit_length(), -1, edges.dtype)
        number = len(self.tables)
        self.tables.append(table)
        portions = np.split(edges, range(EDGES_AT_ONCE, len(edges), EDGES_AT_ONCE))
        for some in portions:
            table[self._slots(number, self.ends[0][some], self.ends[1][some])] = some
        return np.concatenate(
            [some[table[self._slots(number, self.ends[0][some], self.ends[1][some])] != some] for some in portions]
        )

    def _slots(self, number: int, u: Ints, v: Ints) -> Ints:
        """The slots of edges in one of the tables, another hash in each; a row of edges has its slots side by side."""
        size = len(self.tables[number])
        row = u.astype(np.uint64)
        row *= np.uint64(FACTOR * (2 * number + 1) % 2**64)
        row >>= np.uint64(64 - (size - 1).bit_length())
        slots: Ints = (row.view(np.int64) + v) & (size - 1)
        return slots
