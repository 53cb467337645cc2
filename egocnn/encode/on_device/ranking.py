"""Rank neighbours on any device: ResidentGraphs -> (N, K) table of node ids, -1 where absent.

The rules, and every entry of the table, are those of :mod:`egocnn.encode.ranking` for adjacent nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.encode.colours import COUNTED_ROUNDS, MOST_ROUNDS, Colours
from egocnn.encode.on_device.arrays import ascending, from_words, order_by, padded_rows, pick, repeat, starts, to_words
from egocnn.encode.on_device.colours import stable_colours, wl_rounds
from egocnn.encode.on_device.graphs import ResidentGraphs
from egocnn.encode.on_device.ties import settle
from egocnn.errors import ConfigError

if TYPE_CHECKING:
    from egocnn.encode.ranking import Ranking


def rank_neighbours(graphs: ResidentGraphs, k: int = 16, *, ranking: Ranking | None = None) -> Tensor:
    """The ``k`` ranked neighbours of every node: (N, k) int32, -1 where absent, the node itself not in it.

    Rarity is counted over ``graphs`` themselves unless a fitted ``ranking`` is given.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    return _adjacent(graphs, order_nodes(graphs, ranking), k)


def count_colours(graphs: ResidentGraphs, rounds: int) -> Iterator[tuple[Colours, Ints]]:
    """For each of the first WL rounds: the colours there are, ascending, and how many nodes have each."""
    for colour in wl_rounds(graphs, rounds):
        classes = Classes.of(colour)
        counts: Ints = classes.sizes.cpu().numpy()
        yield to_words(classes.colour), counts


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """All nodes (N) of a collection, from the one to be ranked first to the one to be ranked last."""

    nodes: Tensor
    place: Tensor
    """where each node stands in ``nodes``"""
    tier: Tensor
    """the first place among its equals: the same for nodes that no colour tells apart"""


def order_nodes(graphs: ResidentGraphs, ranking: Ranking | None = None) -> Order:
    """Put all nodes of the collection in the order of rules 3 to 5 of :mod:`egocnn.encode.ranking`."""
    rounds = COUNTED_ROUNDS if ranking is None else len(ranking.colours)
    tier = torch.zeros(graphs.n_nodes, dtype=torch.int64, device=graphs.indptr.device)
    for number, colour in enumerate(wl_rounds(graphs, rounds)):
        classes = Classes.of(colour)
        # counted over these very graphs, a colour is as rare as its class is small
        rarity = classes.sizes if ranking is None else _look_up(classes.colour, ranking, number)
        tier = _part_tiers(tier, classes, rarity)
    stable = stable_colours(graphs, colour, most=MOST_ROUNDS)
    classes = Classes.of(stable)
    tier = _part_tiers(tier, classes, torch.zeros_like(classes.sizes))
    nodes = order_by(settle(graphs, stable, tier, most_rounds=MOST_ROUNDS))
    place = torch.empty_like(nodes)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    return Order(nodes, place, tier)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Nodes of one colour together, the colours (C) in ascending order."""

    nodes: Tensor
    """(N) class by class"""
    colour: Tensor
    """(C)"""
    one: Tensor
    """(C) a node of each"""
    sizes: Tensor
    """(C)"""

    @staticmethod
    def of(colour: Tensor) -> Classes:
        nodes = order_by(ascending(colour))
        first = starts(colour[nodes])
        one = nodes[first]
        return Classes(nodes, colour[one], one, torch.diff(first, append=first.new_tensor([len(nodes)])))


def _part_tiers(tier: Tensor, classes: Classes, rarity: Tensor) -> Tensor:
    """Tiers (N) parted by rarity (C) and then by colour; a tier is counted by the nodes that come before it.

    Colours only ever become finer, so all nodes of one colour share a tier: to put one of them in its place will do.
    """
    sizes = classes.sizes
    by = order_by(tier[classes.one], rarity)  # the colours ascend already
    before = torch.empty_like(sizes)
    before[by] = sizes[by].cumsum(0) - sizes[by]
    parted = torch.empty_like(tier)
    parted[classes.nodes] = repeat(before, sizes, len(tier))
    return parted


def _look_up(colour: Tensor, ranking: Ranking, number: int) -> Tensor:
    """How often the training graphs have each colour in this round; 0 for one that they lack."""
    seen = from_words(ranking.colours[number], colour.device)
    counts = torch.from_numpy(ranking.counts[number]).to(colour.device)
    if len(seen) == 0:
        return torch.zeros_like(colour)
    at = torch.searchsorted(ascending(seen), ascending(colour)).clamp_(max=len(seen) - 1)
    return torch.where(seen[at] == colour, counts[at], 0)


def _adjacent(graphs: ResidentGraphs, order: Order, k: int) -> Tensor:
    """The first k adjacent nodes of every node by weight, place in the order, and label of the edge."""
    table = torch.full((graphs.n_nodes, k), -1, dtype=torch.int32, device=graphs.indptr.device)
    place, tier = order.place.int(), order.tier
    for rows, entries, is_there in padded_rows(graphs.indptr):
        neighbour = graphs.indices[entries]
        is_absent = ~is_there | (neighbour == rows[:, None])
        keys = [pick(place, neighbour)]  # the last counts most
        if graphs.edge_label is not None:
            keys.append((pick(tier, neighbour) << 32) + graphs.edge_label[entries] + 1)
        if graphs.edge_weight is not None:
            keys.append(-graphs.edge_weight[entries] + 0.0)  # + 0.0: -0 is 0
        by = _sort_rows(keys, is_absent)[:, :k]
        ranked = neighbour.masked_fill_(is_absent, -1).gather(1, by)
        table[:, : ranked.shape[1]].index_copy_(0, rows, ranked)
    return table


def _sort_rows(keys: list[Tensor], is_last: Tensor) -> Tensor:
    """(n, width) the entries of every row in ascending order of the last key, then of the one before, and so on."""
    by: Tensor | None = None
    for key in keys:
        highest = float("inf") if key.is_floating_point() else torch.iinfo(key.dtype).max
        key = key.masked_fill(is_last, highest)
        by = key.argsort(dim=1) if by is None else by.gather(1, key.gather(1, by).argsort(dim=1, stable=True))
    assert by is not None
    return by
