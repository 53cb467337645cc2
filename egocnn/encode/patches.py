"""What Patchy-San reads around every node: Graphs + ranked neighbours -> rows of an embedding table to sum up. Around
node n, slot 0 is n itself and slot j its j-th ranked neighbour. The labelled adjacency tensor of these P slots is
almost all zeros, so instead of the tensor we keep, for every node, the numbers of its non-zero entries: one number for
each (slot i, slot j, word of the edge label) with an edge between the slots, i <= j, and one for each (slot, word of
the node label). A linear filter over the tensor is then the sum of the table rows with these numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Floats, Ints, pointers, ranges
from egocnn.data.graphs import Graphs
from egocnn.encode.words import Words
from egocnn.nn.embed import PatchShape

NODES_AT_ONCE = 1 << 13  # Nodes whose pairs of slots are looked up together: bounds the memory.
FACTOR = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: multiples scatter consecutive numbers evenly
SLOTS_PER_EDGE = 2  # at least; more slots mean fewer edges that compete for one, and more memory
EDGES_AT_ONCE = 1 << 17  # edges put in their slots together: bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """The table rows of node n are ``rows[ptr[n]:ptr[n + 1]]``."""

    ptr: Ints
    rows: Ints
    weight: Floats | None  # the edge's weight where edges have weights (1 for node labels)


def find_patches(graphs: Graphs, neighbours: Ints, shape: PatchShape, words: Words | None = None) -> Patches:
    """neighbours (N, at least P - 1) -> the table rows of every node; by default labels are single words."""
    portions = list(patch_portions(graphs, neighbours, shape, words))
    counts = np.concatenate([count for count, _, _ in portions])
    rows = np.concatenate([rows for _, rows, _ in portions])
    weighted = graphs.edge_weight is not None
    return Patches(pointers(counts), rows, np.concatenate([w for _, _, w in portions]) if weighted else None)


def patch_portions(
    graphs: Graphs, neighbours: Ints, shape: PatchShape, words: Words | None
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Rows per node, the rows, and their weights, for a few nodes after the other."""
    single = ([] if label is None else [label] for label in (graphs.node_label, graphs.edge_label))
    words, edges = words or Words(*single), EdgeTable(graphs)
    itself = np.arange(graphs.n_nodes, dtype=neighbours.dtype)[:, None]
    for first in range(0, max(graphs.n_nodes, 1), NODES_AT_ONCE):
        here = slice(first, first + NODES_AT_ONCE)
        slots = np.concatenate([itself[here], neighbours[here, : shape.slots - 1]], axis=1)  # (n, P at most)
        joined, edge_rows, weight = _edge_rows(graphs, edges, slots, shape, words.edges)
        labelled, label_rows = _label_rows(words.nodes, slots, shape)
        node, rows = np.concatenate([joined, labelled]), np.concatenate([edge_rows, label_rows])
        weight = np.concatenate([weight, np.ones(len(labelled), np.float32)])
        by = np.argsort(node, kind="stable")  # two ascending runs, which a stable sort merges quickly
        yield np.bincount(node, minlength=len(slots)), rows[by].astype(np.int32), weight[by]


def _edge_rows(
    graphs: Graphs, edges: "EdgeTable", slots: Ints, shape: PatchShape, words: Sequence[Ints]
) -> tuple[Ints, Ints, Floats]:
    """For every word at a pair of slots: the node it is around, counted from 0, its row, and the edge's weight"""
    i, j = shape.pairs
    numbers = [np.flatnonzero(j < filled) for filled in range(shape.slots + 1)]  # pairs of slots that both hold a node
    first, filled = pointers(np.array([len(pairs) for pairs in numbers])), (slots >= 0).sum(axis=1)
    node = np.repeat(np.arange(len(slots)), np.diff(first)[filled])
    pair = np.concatenate(numbers)[ranges(first[filled], first[filled + 1])]
    entry = edges.find(slots[node, i[pair]], slots[node, j[pair]])
    joined = np.flatnonzero(entry >= 0)
    node, pair, entry = node[joined], pair[joined], entry[joined]
    weight = np.ones(len(entry), np.float32) if graphs.edge_weight is None else graphs.edge_weight[entry]
    if not words or shape.edge_labels == 0:
        return node, pair * max(shape.edge_labels, 1), weight
    label = np.stack([column[entry] for column in words], axis=1)
    known, word = np.nonzero(label >= 0)
    return node[known], pair[known] * shape.edge_labels + label[known, word], weight[known]


def _label_rows(words: Sequence[Ints], slots: Ints, shape: PatchShape) -> tuple[Ints, Ints]:
    """For every known word of a slot's node: the node it is around, counted from 0, and its row"""
    if not words or shape.node_labels == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    label = np.stack([np.where(slots >= 0, column[slots], -1) for column in words], axis=2)
    node, slot, word = np.nonzero(label >= 0)
    return node, shape.edge_rows + slot * shape.node_labels + label[node, slot, word]


class EdgeTable:
    """Edges by their ends: each once, u <= v, in the slot that its hash names, or if that is taken, in the next table.
    Two or three cache misses a pair, however large the graph, where a search in sorted entries takes a dozen."""

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
        self.tables.append(table)
        portions = np.split(edges, range(EDGES_AT_ONCE, len(edges), EDGES_AT_ONCE))
        for some in portions:
            table[self._slots(-1, *(end[some] for end in self.ends))] = some
        lost = [some[table[self._slots(-1, *(end[some] for end in self.ends))] != some] for some in portions]
        return np.concatenate(lost)

    def _slots(self, number: int, u: Ints, v: Ints) -> Ints:
        """The slots of edges in one of the tables, another hash in each; a row of edges has its slots side by side."""
        size, number = len(self.tables[number]), number % len(self.tables)
        row = u.astype(np.uint64)
        row *= np.uint64(FACTOR * (2 * number + 1) % 2**64)
        row >>= np.uint64(64 - (size - 1).bit_length())
        slots: Ints = (row.view(np.int64) + v) & (size - 1)
        return slots
