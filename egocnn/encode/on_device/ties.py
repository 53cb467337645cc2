"""Settle ties on any device: nodes that no colour tells apart -> the order that :mod:`egocnn.encode.ties` gives them."""

from __future__ import annotations

import torch
from torch import Tensor

from egocnn.encode import ties as on_host
from egocnn.encode.on_device.arrays import as_signed, ascending, bits, differs_from_previous, mix, order_by, starts
from egocnn.encode.on_device.colours import messages, stable_colours, sum_messages
from egocnn.encode.on_device.graphs import ResidentGraphs

CHOSEN = as_signed(on_host.CHOSEN)


def settle(graphs: ResidentGraphs, colour: Tensor, tier: Tensor, *, most_rounds: int) -> Tensor:
    """Tiers (N), equal where stable colours are -> finer tiers (N), equal only for twins."""
    among = _is_shared(graphs, tier).nonzero().flatten()
    if len(among) == 0:
        return tier
    nodes = torch.arange(graphs.n_nodes, device=tier.device)
    twin = _twins(graphs, colour, among)
    may_choose = _is_shared(graphs, torch.where(twin == nodes, tier, -1 - nodes))
    settled = tier.clone()
    for _ in range(on_host.MOST_TIES):
        tied, chosen = _choose(graphs, tier, may_choose.nonzero().flatten())
        if len(tied) == 0:
            break
        colour = torch.where(torch.isin(twin, twin[chosen]), mix(colour ^ CHOSEN), colour)
        kept = graphs.nodes_of(tied)
        graphs = graphs if len(tied) == len(graphs) else graphs.take(tied)
        nodes, twin, tier, may_choose = nodes[kept], twin[kept], tier[kept], may_choose[kept]
        colour = stable_colours(graphs, colour[kept], most=most_rounds)
        tier = _split(tier, colour)
        settled[nodes] = tier
    return settled


def _is_shared(graphs: ResidentGraphs, tier: Tensor) -> Tensor:
    """(N) whether another node of the same graph has the tier of this one"""
    by = graphs.ordered(tier)
    like_previous = ~differs_from_previous(tier[by], graphs.graph_of)
    is_shared = torch.empty_like(like_previous)
    is_shared[by] = like_previous | torch.cat([like_previous[1:], like_previous.new_zeros(min(1, len(by)))])
    return is_shared


def _choose(graphs: ResidentGraphs, tier: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The graphs with a few ties between candidates, and of each the candidate with the lowest id in its first tie."""
    graph, tier = graphs.graph_of[candidates], tier[candidates]
    by = order_by(graph, tier)
    graph = graph[by]
    tie = (~differs_from_previous(graph, tier[by])[1:]).nonzero().flatten()
    first = starts(graph[tie])
    ties = torch.diff(first, append=first.new_tensor([len(tie)]))
    first = tie[first[ties <= on_host.MOST_TIES]]
    return graph[first], candidates[by[first]]


def _split(tier: Tensor, colour: Tensor) -> Tensor:
    """Tiers split by colour; a node's tier is the first place that it may take."""
    by = order_by(tier, ascending(colour))
    place = torch.arange(len(by), device=tier.device)
    new_tier = differs_from_previous(tier[by])
    new_colour = differs_from_previous(colour[by]) | new_tier
    first, first_of_tier = (torch.where(new, place, 0).cummax(0).values for new in (new_colour, new_tier))
    split = torch.empty_like(tier)
    split[by] = tier[by] + first - first_of_tier
    return split


def _twins(graphs: ResidentGraphs, colour: Tensor, among: Tensor) -> Tensor:
    """(N) the lowest id among nodes of one colour with the very same edges to all others: they can be swapped.

    All nodes whose colour another node of their graph has must be ``among`` those that are looked at.
    """
    twin = torch.arange(graphs.n_nodes, device=colour.device)
    itself = mix(bits(twin))
    around = sum_messages(graphs, itself, weighted=True)
    loop = messages(graphs, itself, graphs.loops, weighted=True)
    around.index_add_(0, graphs.indices[graphs.loops], -loop)  # a loop shows in the colour
    around, colour = around[among], colour[among]
    twin[among] = among[_first_of_equals(mix(around ^ colour))]
    if graphs.edge_label is None and graphs.edge_weight is None:
        # twins that are adjacent have the same neighbours when each counts itself; a node has twins of one kind only
        adjacent = among[_first_of_equals(mix((around + itself[among]) ^ colour))]
        twin[among] = torch.minimum(twin[among], adjacent)
    return twin


def _first_of_equals(values: Tensor) -> Tensor:
    """Where the value of each stands first."""
    by = order_by(values)
    first = starts(values[by])
    where = torch.empty_like(by)
    where[by] = by[first].repeat_interleave(torch.diff(first, append=first.new_tensor([len(by)])), output_size=len(by))
    return where
