"""Settle ties: nodes that no colour tells apart -> an order among them that hardly depends on their ids. Mostly such
nodes are symmetric to each other, and any one of them may go first. But the choices must agree: where two cliques of
equal size meet in a node, taking its neighbours by their ids would mix the members of both. So one node of a tie is set
apart, by its id, and refining the colours again carries the choice to every node that stands nearer to it than the
rest; and so on until only twins are tied, nodes with the very same neighbours. Where the nodes of a tie are symmetric,
the outcome is the same ordered graph whatever their ids; else (some regular graphs), ids decide."""

import numpy as np

from egocnn.data.arrays import Bools, Ints, bits, equal_rows, mix, ranges, row_portions, starts, sum_rows
from egocnn.data.graphs import Graphs
from egocnn.encode.colours import Colours, stable_colours

MOST_TIES = 32  # a graph with more (a thread with hundreds of like answers) keeps the order of ids: bounds the time
CHOSEN = np.uint64(0xA0761D6478BD642F)  # Any 64-bit number but 0: what it is mixed into becomes another colour.


def settle(graphs: Graphs, colour: Colours, tier: Ints, *, most_rounds: int) -> Ints:
    """Tiers (N), equal where stable colours are -> finer tiers (N), equal only for twins."""
    nodes = np.arange(graphs.n_nodes)
    twin = _twins(graphs, colour, np.flatnonzero(_is_shared(graphs, tier)))
    may_choose = _is_shared(graphs, np.where(twin == nodes, tier, -1 - nodes))
    settled = tier.copy()
    for _ in range(MOST_TIES):
        tied, chosen = _choose(graphs, tier, np.flatnonzero(may_choose))
        if len(tied) == 0:
            break
        colour = np.where(np.isin(twin, twin[chosen]), mix(colour ^ CHOSEN), colour)
        kept = ranges(graphs.node_ptr[tied], graphs.node_ptr[tied + 1])
        graphs, nodes, twin, tier, may_choose = graphs[tied], nodes[kept], twin[kept], tier[kept], may_choose[kept]
        colour = stable_colours(graphs, colour[kept], most=most_rounds)
        tier = _split(tier, colour)
        settled[nodes] = tier
    return settled


def _is_shared(graphs: Graphs, tier: Ints) -> Bools:
    """(N) whether another node of the same graph has the tier of this one"""
    is_shared = np.zeros(graphs.n_nodes, bool)
    for _, nodes in equal_rows(graphs.node_ptr):
        by = np.argsort(tier[nodes], axis=1)
        nodes = np.take_along_axis(nodes, by, axis=1)
        like_next = tier[nodes[:, 1:]] == tier[nodes[:, :-1]]
        is_shared[nodes] = np.pad(like_next, ((0, 0), (0, 1))) | np.pad(like_next, ((0, 0), (1, 0)))
    return is_shared


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


def _twins(graphs: Graphs, colour: Colours, among: Ints) -> Ints:
    """(N) the lowest id among nodes of one colour with the very same edges to all others: they can be swapped. All
    nodes whose colour another node of their graph has must be ``among`` those that are looked at."""
    itself = mix(bits(np.arange(graphs.n_nodes)))
    around = np.empty_like(itself)
    for nodes, entries in row_portions(graphs.indptr):
        neighbour, pointer = graphs.indices[entries], graphs.indptr[nodes.start : nodes.stop + 1] - entries.start
        edge = itself[neighbour]
        for values in (graphs.edge_label, graphs.edge_weight):
            if values is not None:
                edge = mix(edge ^ mix(bits(values[entries])))
        is_loop = neighbour == np.repeat(np.arange(nodes.start, nodes.stop), np.diff(pointer))
        edge[is_loop] = 0  # a loop shows in the colour
        around[nodes] = sum_rows(edge, pointer)
    twin = np.arange(graphs.n_nodes)
    around, colour = around[among], colour[among]
    twin[among] = among[_first_of_equals(mix(around ^ colour))]
    if graphs.edge_label is None and graphs.edge_weight is None:
        # twins that are adjacent have the same neighbours when each counts itself; a node has twins of one kind only
        adjacent = among[_first_of_equals(mix((around + itself[among]) ^ colour))]
        twin[among] = np.minimum(twin[among], adjacent)
    return twin


def _first_of_equals(values: Colours) -> Ints:
    """Where the value of each stands first."""
    by = np.argsort(values, kind="stable")
    first = starts(values[by])
    where = np.empty_like(by)
    where[by] = np.repeat(by[first], np.diff(first, append=len(by)))
    return where
