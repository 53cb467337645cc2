"""Weisfeiler-Lehman colours: Graphs -> a 64-bit colour per node, one round after the other. Two nodes share a colour of
round r exactly if their r-hop neighbourhoods unfold to the same labelled tree. A colour is a hash of the node's last
colour and the multiset of (neighbour's last colour, edge label); unlike label strings joined end to end, sums of mixed
64-bit numbers do not confuse 1,12 with 11,2. Colours depend on label numbers and structure alone: they mean the same on
every machine and in every collection that counts its labels by the same names. Any two of n different neighbourhoods
are confused with a probability below n^2 / 2^65: one in 30 million for a million of them."""

from collections.abc import Iterator

import numpy as np

from egocnn.data.arrays import Ints, Words, bits, equal_rows, mix, ranges, row_portions, sum_rows
from egocnn.data.graphs import Graphs

Colours = Words
OWN = np.uint64(0xD6E8FEB86659FD93)  # any odd number of balanced bits; to change it changes every saved ranking
COUNTED_ROUNDS = 3  # Rounds after which the nodes of each colour are counted, by default: ties fall to the later ones.
MOST_ROUNDS = 256  # Enough for a chain of 500 nodes; longer ones are cut here to bound the time.
MOST_WORK = 1 << 24  # Nodes times rounds: graphs of more than 65,536 nodes have fewer rounds.


def initial_colours(graphs: Graphs) -> Colours:
    """Colours (N) before the first round: the node labels."""
    if graphs.node_label is None:
        return np.zeros(graphs.n_nodes, np.uint64)
    return mix(bits(graphs.node_label))


def refine(graphs: Graphs, colour: Colours, *, weighted: bool = False, loops: Ints | None = None) -> Colours:
    """Colours (N) -> colours (N) after one more round; ``weighted``: edges of different weight are different. ``loops``
    saves looking again for the entries that join a node to itself."""
    sent, around = mix(colour), np.empty_like(colour)
    portions = list(row_portions(graphs.indptr))
    running = np.zeros(1 + max((entries.stop - entries.start for _, entries in portions), default=0), np.uint64)
    for nodes, entries in portions:
        message = running[1 : 1 + entries.stop - entries.start]  # used again: fresh memory costs more than the sums
        _write_messages(graphs, sent, entries, message, weighted=weighted)
        np.cumsum(message, out=message)
        until = running[graphs.indptr[nodes.start : nodes.stop + 1] - entries.start]
        around[nodes] = until[1:] - until[:-1]  # differences of running sums also serve empty rows
    loops = find_loops(graphs) if loops is None else loops
    if len(loops):
        message = np.empty(len(loops), np.uint64)
        _write_messages(graphs, sent, loops, message, weighted=weighted)
        around[graphs.indices[loops]] += mix(message ^ OWN) - message  # not one more neighbour of the same colour
    # its own colour is mixed differently: else C with neighbours O, O, O may pass for O with C, C, C
    return mix(mix(colour ^ OWN) + around)


def _write_messages(graphs: Graphs, sent: Colours, entries: slice | Ints, message: Colours, *, weighted: bool) -> None:
    """The message of each adjacency entry: what its neighbour sends (N), mixed with label and weight of the edge."""
    # clip: no neighbour is out of range, and to check each once more takes as long as to fetch it
    np.take(sent, graphs.indices[entries], out=message, mode="clip")
    for values in (graphs.edge_label, graphs.edge_weight if weighted else None):
        if values is not None:
            message[:] = mix(message ^ mix(bits(values[entries])))


def find_loops(graphs: Graphs) -> Ints:
    """The adjacency entries that join a node to itself."""
    found = [np.zeros(0, np.int64)]
    for nodes, entries in row_portions(graphs.indptr):
        node = np.arange(nodes.start, nodes.stop, dtype=graphs.indices.dtype)
        node = np.repeat(node, np.diff(graphs.indptr[nodes.start : nodes.stop + 1]))
        found.append(np.flatnonzero(graphs.indices[entries] == node) + entries.start)
    return np.concatenate(found)


def wl_rounds(graphs: Graphs, rounds: int) -> Iterator[Colours]:
    """Colours (N) after 1, 2, ... ``rounds`` rounds."""
    colour, loops = initial_colours(graphs), find_loops(graphs)
    for _ in range(rounds):
        colour = refine(graphs, colour, loops=loops)
        yield colour


def stable_colours(graphs: Graphs, colour: Colours, *, most: int) -> Colours:
    """Refine ``colour`` in every graph until that graph gains no more colours, or ``most`` rounds have passed. Node
    attributes and edge weights count here, unlike in :func:`wl_rounds`: as numbers they would make nearly every colour
    the only one of its kind, but what the network can tell apart must not be left to node ids. Each graph stops by
    itself: its colours must not depend on which other graphs stand in the collection."""
    for values in () if graphs.node_attr is None else graphs.node_attr.T:
        colour = mix(colour ^ mix(bits(values)))
    stable = colour.copy()
    nodes = np.arange(graphs.n_nodes)
    distinct, loops = _distinct_per_graph(graphs, colour), find_loops(graphs)
    for done in range(1, most + 1):
        refined = refine(graphs, colour, weighted=True, loops=loops)
        now = _distinct_per_graph(graphs, refined)
        grown = now > distinct  # a round that splits no class is followed by none that does
        stable[nodes] = np.where(np.repeat(grown, graphs.node_counts), refined, colour)
        goes_on = grown & (now < graphs.node_counts) & (done * graphs.node_counts < MOST_WORK)
        growing = np.flatnonzero(goes_on)
        if len(growing) == 0:
            break
        colour, distinct = refined, now
        if len(growing) < len(graphs):
            kept = ranges(graphs.node_ptr[growing], graphs.node_ptr[growing + 1])
            graphs, nodes, colour, distinct = graphs[growing], nodes[kept], refined[kept], now[growing]
            loops = find_loops(graphs)
    return stable


def looks(graphs: Graphs) -> Ints:
    """(G) a number per graph, the same for graphs whose stable colours agree, attributes and weights counted"""
    stable = stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS)
    # one round more: a graph may be stable within itself before all that sets it apart from others has been seen
    colour = refine(graphs, stable, weighted=True)
    return sum_rows(mix(colour), graphs.node_ptr).view(np.int64)


def _distinct_per_graph(graphs: Graphs, colour: Colours) -> Ints:
    """(G) how many colours each graph has"""
    distinct = np.zeros(len(graphs), np.int64)
    for some, nodes in equal_rows(graphs.node_ptr):
        ordered = np.sort(colour[nodes], axis=1)
        distinct[some] = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    return distinct
