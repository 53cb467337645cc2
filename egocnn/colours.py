"""Weisfeiler-Lehman colours: Graphs -> a 64-bit colour per node, one round after the other.

Two nodes share a colour of round r exactly if their r-hop neighbourhoods unfold to the same labelled tree. A
colour is a hash of the node's last colour and the multiset of (neighbour's last colour, edge label); unlike label
strings joined end to end, sums of mixed 64-bit numbers do not confuse 1,12 with 11,2. Colours depend on labels
and structure alone, so they mean the same in every collection and on every machine. Among n different
neighbourhoods, any two are confused with a probability below n^2 / 2^65: one in 30 million for a million of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from egocnn.arrays import Ints, ranges
from egocnn.graphs import Graphs

Colours = NDArray[np.uint64]


def initial_colours(graphs: Graphs) -> Colours:
    """Colours (N) before the first round: the node labels."""
    if graphs.node_label is None:
        return np.zeros(graphs.n_nodes, np.uint64)
    return mix(_unsigned(graphs.node_label))


def refine(graphs: Graphs, colour: Colours) -> Colours:
    """Colours (N) -> colours (N) after one more round."""
    message = mix(colour)[graphs.indices]
    if graphs.edge_label is not None:
        message = mix(message ^ mix(_unsigned(graphs.edge_label)))
    return mix(mix(colour) * np.uint64(3) + _sum_rows(message, graphs.indptr))


def wl_rounds(graphs: Graphs, rounds: int) -> Iterator[Colours]:
    """Colours (N) after 1, 2, ... ``rounds`` rounds."""
    colour = initial_colours(graphs)
    for _ in range(rounds):
        colour = refine(graphs, colour)
        yield colour


def stable_colours(graphs: Graphs, colour: Colours, *, most: int) -> Colours:
    """Refine ``colour`` in every graph until that graph gains no more colours, or ``most`` rounds have passed.

    Each graph stops by itself: its colours must not depend on which other graphs stand in the collection.
    """
    stable = colour.copy()
    nodes = np.arange(graphs.n_nodes)
    distinct = _distinct_per_graph(graphs, colour)
    for _ in range(most):
        colour = refine(graphs, colour)
        now = _distinct_per_graph(graphs, colour)
        growing = np.flatnonzero(now > distinct)  # a round that splits no class is followed by none that does
        if len(growing) == 0:
            break
        kept = ranges(graphs.node_ptr[growing], graphs.node_ptr[growing + 1])
        graphs, nodes, colour, distinct = graphs[growing], nodes[kept], colour[kept], now[growing]
        stable[nodes] = colour
    return stable


def mix(values: Colours) -> Colours:
    """Scatter 64-bit numbers so that sums of the results look random (the finaliser of splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _distinct_per_graph(graphs: Graphs, colour: Colours) -> Ints:
    """(G) how many colours each graph has"""
    apart = colour ^ mix(_unsigned(graphs.graph_of))  # no two graphs share a value
    order = np.argsort(apart)
    first = np.ones(len(order), bool)
    first[1:] = apart[order[1:]] != apart[order[:-1]]
    return np.bincount(graphs.graph_of[order[first]], minlength=len(graphs))


def _unsigned(codes: Ints) -> Colours:
    return codes.astype(np.int64).view(np.uint64)


def _sum_rows(values: Colours, indptr: Ints) -> Colours:
    """Sum of every row, modulo 2^64; differences of running sums also serve empty rows."""
    running = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=running[1:])
    return running[indptr[1:]] - running[indptr[:-1]]
