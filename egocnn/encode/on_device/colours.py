"""Weisfeiler-Lehman colours on any device: ResidentGraphs -> the 64-bit colours of :mod:`egocnn.encode.colours`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from egocnn.encode import colours as on_host
from egocnn.encode.on_device.arrays import as_signed, bits, differs_from_previous, mix, pick, row_portions, sum_rows
from egocnn.encode.on_device.graphs import ResidentGraphs

OWN = as_signed(on_host.OWN)


def initial_colours(graphs: ResidentGraphs) -> Tensor:
    """Colours (N) before the first round: the node labels."""
    if graphs.node_label is None:
        return torch.zeros(graphs.n_nodes, dtype=torch.int64, device=graphs.indptr.device)
    return mix(bits(graphs.node_label))


def refine(graphs: ResidentGraphs, colour: Tensor, *, weighted: bool = False) -> Tensor:
    """Colours (N) -> colours (N) after one more round; ``weighted``: edges of different weight are different."""
    sent = mix(colour)
    around = sum_messages(graphs, sent, weighted=weighted)
    loop = messages(graphs, sent, graphs.loops, weighted=weighted)
    around.index_add_(0, graphs.indices[graphs.loops], mix(loop ^ OWN) - loop)  # a loop is not one more neighbour
    # its own colour is mixed differently: else C with neighbours O, O, O may pass for O with C, C, C
    return mix(around.add_(mix(colour ^ OWN)))


def messages(graphs: ResidentGraphs, sent: Tensor, entries: slice | Tensor, *, weighted: bool) -> Tensor:
    """What each of these entries hears from its neighbour: what that sends (N), mixed with what the edge is like."""
    message = pick(sent, graphs.indices[entries])
    if graphs.edge_label is not None:
        message = mix(message ^ mix(bits(graphs.edge_label[entries])))
    if weighted and graphs.edge_weight is not None:
        message = mix(message ^ mix(bits(graphs.edge_weight[entries])))
    return message


def sum_messages(graphs: ResidentGraphs, sent: Tensor, *, weighted: bool) -> Tensor:
    """(N) the sum of all that each node hears"""
    around = torch.zeros_like(sent)
    for nodes, entries in row_portions(graphs.indptr):
        pointer = graphs.indptr[nodes.start : nodes.stop + 1] - entries.start
        around[nodes] = sum_rows(messages(graphs, sent, entries, weighted=weighted), pointer)
    return around


def wl_rounds(graphs: ResidentGraphs, rounds: int) -> Iterator[Tensor]:
    """Colours (N) after 1, 2, ... ``rounds`` rounds."""
    colour = initial_colours(graphs)
    for _ in range(rounds):
        colour = refine(graphs, colour)
        yield colour


def stable_colours(graphs: ResidentGraphs, colour: Tensor, *, most: int) -> Tensor:
    """Refine ``colour`` in every graph until that graph gains no more colours, or ``most`` rounds have passed.

    Node attributes and edge weights count here, and each graph stops by itself.
    """
    for values in () if graphs.node_attr is None else graphs.node_attr.T:
        colour = mix(colour ^ mix(bits(values)))
    stable = colour.clone()
    nodes: Tensor | slice = slice(None)
    distinct = _distinct_per_graph(graphs, colour)
    for _ in range(most):
        refined = refine(graphs, colour, weighted=True)
        now = _distinct_per_graph(graphs, refined)
        grown = now > distinct  # a round that splits no class is followed by none that does
        stable[nodes] = torch.where(graphs.of_nodes(grown), refined, colour)
        growing = (grown & (now < graphs.node_counts)).nonzero().flatten()
        if len(growing) == 0:
            break
        colour, distinct = refined, now
        if len(growing) < len(graphs):
            kept = graphs.nodes_of(growing)
            nodes = kept if isinstance(nodes, slice) else nodes[kept]
            graphs, colour, distinct = graphs.take(growing), refined[kept], now[growing]
    return stable


def _distinct_per_graph(graphs: ResidentGraphs, colour: Tensor) -> Tensor:
    """(G) how many colours each graph has"""
    by = graphs.ordered(colour)
    return sum_rows(differs_from_previous(colour[by], graphs.graph_of).long(), graphs.node_ptr)
