"""Graphs -> all nodes in an order that no renumbering changes: by degree, Weisfeiler-Lehman colour, canonical form."""

from __future__ import annotations

import numpy as np

from egocnn.data.arrays import Ints, Words, bits, mix, sum_rows
from egocnn.data.graphs import Graphs
from egocnn.encode.colours import MOST_ROUNDS, initial_colours, stable_colours
from egocnn.encode.ranking import Order
from egocnn.errors import MissingExtraError


def canonical_order(graphs: Graphs) -> Order:
    """Graph after graph: nodes of more neighbours first, equals by stable colour, what is still tied by BLISS.

    BLISS sees the colours but no edge labels: symmetric nodes apart, ties can remain only where edge labels differ
    and yet give no node another colour.
    """
    tier = _tiers(graphs)
    twin, kind = _first_twins(graphs, tier)
    alone = np.flatnonzero(twin == np.arange(graphs.n_nodes))
    by = alone[np.argsort(tier[alone], kind="stable")]
    tied = np.unique(graphs.graph_of[by[1:][tier[by[1:]] == tier[by[:-1]]]])
    within = np.zeros(graphs.n_nodes, np.int64)
    for g in tied:
        nodes = np.arange(graphs.node_ptr[g], graphs.node_ptr[g + 1])
        nodes = nodes[twin[nodes] == nodes]
        _, colour = np.unique(np.stack([tier[nodes], kind[nodes]]), axis=1, return_inverse=True)
        within[nodes[canonical_nodes(graphs, nodes, colour)]] = np.arange(len(nodes))
    ordered = np.lexsort((twin, within[twin], tier))
    place = np.empty_like(ordered)
    place[ordered] = np.arange(len(ordered))
    return Order(ordered, place, place)


def canonical_nodes(graphs: Graphs, nodes: Ints, colour: Ints) -> Ints:
    """Positions in ``nodes``, those of one graph or some of them, as the canonical form of what joins them lists them.

    ``colour``, one for each of the nodes, must be respected.
    """
    try:
        import igraph
    except ImportError:
        raise MissingExtraError("igraph", "baselines") from None
    first = int(nodes[0])
    number = np.full(int(nodes[-1]) - first + 1, -1)
    number[nodes - first] = np.arange(len(nodes))
    entries = slice(int(graphs.indptr[first]), int(graphs.indptr[nodes[-1] + 1]))
    node = np.repeat(np.arange(len(number)), graphs.degree[first : int(nodes[-1]) + 1])
    neighbour = graphs.indices[entries].astype(np.int64) - first
    once = np.flatnonzero((neighbour > node) & (neighbour < len(number)))
    edges = np.stack([number[node[once]], number[neighbour[once]]], axis=1)
    graph = igraph.Graph(len(nodes), edges[(edges >= 0).all(axis=1)].tolist())
    # what the permutation maps to what has changed between versions of igraph: let the nodes themselves tell
    graph.vs["was"] = range(len(nodes))
    permutation = graph.canonical_permutation(color=colour.tolist())
    return np.array(graph.permute_vertices(permutation).vs["was"], np.int64)


def _tiers(graphs: Graphs) -> Ints:
    """(N) how many nodes come before all those of this graph, degree and stable colour"""
    colour = stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS)
    keys = (colour, -graphs.degree, graphs.graph_of)
    by = np.lexsort(keys)
    fresh = np.ones(len(by), bool)
    fresh[1:] = np.any([key[by][1:] != key[by][:-1] for key in keys], axis=0)
    tier = np.empty(len(by), np.int64)
    tier[by] = np.maximum.accumulate(np.where(fresh, np.arange(len(by)), 0))
    return tier


def _first_twins(graphs: Graphs, tier: Ints) -> tuple[Ints, Ints]:
    """(N) the first of all nodes of its tier with the very same neighbours, and how many these are.

    Which of them is which makes no difference, and a search through the thousands of leaves around a hub, or through
    a large clique, would take minutes. The number is negative where the twins are neighbours of each other.
    """
    heard = mix(bits(graphs.indices))
    plain = graphs.edge_label is None and graphs.edge_weight is None
    for values in (graphs.edge_label, graphs.edge_weight):
        if values is not None:
            heard = mix(heard ^ mix(bits(values)))
    around = sum_rows(heard, graphs.indptr)
    twin, kind = _first_alike(around, tier)
    if plain:  # edges among the twins could differ from each other if they carried anything
        joined, size = _first_alike(around + mix(bits(np.arange(graphs.n_nodes))), tier)
        # nobody has twins of both sorts: a neighbour of the one would be a neighbour of the other
        twin, kind = np.minimum(twin, joined), np.where(size > 1, -size, kind)
    return twin, kind


def _first_alike(value: Words, tier: Ints) -> tuple[Ints, Ints]:
    """(N) the first node of the same tier and value, and how many there are"""
    by = np.lexsort((value, tier))
    fresh = np.ones(len(by), bool)
    fresh[1:] = (value[by][1:] != value[by][:-1]) | (tier[by][1:] != tier[by][:-1])
    start = np.flatnonzero(fresh)
    sizes = np.diff(start, append=len(by))
    first, size = np.empty(len(by), np.int64), np.empty(len(by), np.int64)
    first[by], size[by] = np.repeat(by[start], sizes), np.repeat(sizes, sizes)
    return first, size
