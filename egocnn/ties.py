"""Settle ties: nodes that no colour tells apart -> an order among them that hardly depends on their ids.

Mostly such nodes are symmetric to each other, and any one of them may go first. But the choices must agree: where two
cliques of equal size meet in a node, taking its neighbours by their ids would mix the members of both. So one
node of a tie is set apart, by its id, and refining the colours again carries the choice to every node that stands
nearer to it than the rest; and so on until only twins are tied, nodes with the very same neighbours. As long as the
nodes of a tie are symmetric, the outcome is the same ordered graph whatever their ids. Where they are not (some
regular graphs), ids decide.
"""

from __future__ import annotations

import numpy as np

from egocnn.arrays import Ints, bits, mix, ranges, sum_rows
from egocnn.colours import Colours, stable_colours
from egocnn.graphs import Graphs

MOST_TIES = 32
"""A graph with more ties (a thread with hundreds of like answers) keeps the order of ids there: bounds the time."""

CHOSEN = np.uint64(0xA0761D6478BD642F)
"""Any 64-bit number but 0: what it is mixed into becomes another colour."""


def settle(graphs: Graphs, colour: Colours, tier: Ints, *, most_rounds: int) -> Ints:
    """Tiers (N), equal where stable colours are -> finer tiers (N), equal only for twins."""
    twin, nodes = _twins(graphs, colour), np.arange(graphs.n_nodes)
    settled = tier.copy()
    for _ in range(MOST_TIES):
        tied, chosen = _choose(graphs, tier, np.flatnonzero(twin == nodes))
        if len(tied) == 0:
            break
        colour = np.where(np.isin(twin, twin[chosen]), mix(colour ^ CHOSEN), colour)
        kept = ranges(graphs.node_ptr[tied], graphs.node_ptr[tied + 1])
        graphs, nodes, twin, tier = graphs[tied], nodes[kept], twin[kept], tier[kept]
        colour = stable_colours(graphs, colour[kept], most=most_rounds)
        tier = _split(tier, colour)
        settled[nodes] = tier
    return settled


def _choose(graphs: Graphs, tier: Ints, candidates: Ints) -> tuple[Ints, Ints]:
    """The graphs with a few ties between candidates, and of each the candidate with the lowest id in its first tie."""
    graph = graphs.graph_of[candidates]
    by = np.lexsort((tier[candidates], graph))
    graph, tier = graph[by], tier[candidates][by]
    tie = np.flatnonzero((graph[1:] == graph[:-1]) & (tier[1:] == tier[:-1]))
    tied, first, ties = np.unique(graph[tie], return_index=True, return_counts=True)
    few = ties <= MOST_TIES
    return tied[few], candidates[by[tie[first[few]]]]


def _split(tier: Ints, colour: Colours) -> Ints:
    """Tiers split by colour; a node's tier is the first place that it may take."""
    by = np.lexsort((colour, tier))
    place = np.arange(len(by))
    new_tier = np.diff(tier[by], prepend=-1) != 0
    new_colour = new_tier.copy()
    new_colour[1:] |= colour[by[1:]] != colour[by[:-1]]
    into = np.maximum.accumulate(np.where(new_colour, place, 0)) - np.maximum.accumulate(np.where(new_tier, place, 0))
    split = np.empty_like(tier)
    split[by] = tier[by] + into
    return split


def _twins(graphs: Graphs, colour: Colours) -> Ints:
    """(N) the lowest id among nodes of one colour with the very same edges to all others: they can be swapped."""
    edge = mix(bits(graphs.indices))
    for values in (graphs.edge_label, graphs.edge_weight):
        if values is not None:
            edge = mix(edge ^ mix(bits(values)))
    edge[graphs.indices == graphs.entry_node] = 0  # a loop shows in the colour
    around = sum_rows(edge, graphs.indptr)
    twin = _first_of_equals(mix(around ^ colour))
    if graphs.edge_label is None and graphs.edge_weight is None:
        # twins that are adjacent have the same neighbours when each counts itself; a node has twins of one kind only
        twin = np.minimum(twin, _first_of_equals(mix((around + mix(bits(np.arange(graphs.n_nodes)))) ^ colour)))
    return twin


def _first_of_equals(values: Colours) -> Ints:
    _, first, which = np.unique(values, return_index=True, return_inverse=True)
    return first[which]
