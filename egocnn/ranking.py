"""Rank the neighbours of every node: Graphs -> (N, K) table of node ids, -1 where absent.

The order among the neighbours of a node decides which filter sees which neighbour, so it must not depend on how
the nodes happen to be numbered. In order of precedence:

1. fewer hops first (with ``max_hops=1``, adjacent nodes only);
2. heavier edge first, where edges have weights;
3. rarer colour first, by how often the training graphs have the 1-WL colour; a colour they lack is the rarest
   (a rare colour says most about its ego network);
4. ties: the 1-WL colour itself, then rarity and colour after 2 and 3 rounds, then the colour that stays stable,
   which also sees node attributes and edge weights, then the label of the edge;
5. what is still tied: node id, one choice at a time, each carried as far as it tells nodes apart
   (:mod:`egocnn.ties`).

Rule 5 decides only between nodes that Weisfeiler-Lehman cannot tell apart at all. Mostly these are symmetric to
each other (the hydrogens of a methyl group, two equal cliques that share a node), and then ids change nothing. Where
they are not (regular graphs with triangles, such as a ring of six joined to two rings of three), renumbering the
nodes may change a prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from egocnn.arrays import Ints, pointers, ranges
from egocnn.colours import Colours, stable_colours, wl_rounds
from egocnn.errors import ConfigError
from egocnn.graphs import Graphs
from egocnn.ties import settle

MOST_ROUNDS = 256
"""Enough for a chain of 500 nodes; longer ones are cut here to bound the time."""

PAIRS_AT_ONCE = 1 << 22
"""Candidate pairs expanded together when neighbours may be several hops away: bounds the memory."""


def rank_neighbours(graphs: Graphs, k: int = 16, *, max_hops: int = 1, ranking: Ranking | None = None) -> Ints:
    """The ``k`` ranked neighbours of every node: (N, k) integers, -1 where absent, the node itself not in it.

    Rarity is counted over ``graphs`` themselves unless a fitted ``ranking`` is given.
    """
    return (ranking or Ranking.fit(graphs)).neighbours(graphs, k, max_hops=max_hops)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """All nodes (N) of a collection, from the one to be ranked first to the one to be ranked last."""

    nodes: Ints
    place: Ints
    """where each node stands in ``nodes``"""
    tier: Ints
    """the first place among its equals: the same for nodes that no colour tells apart"""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """How often the training graphs have each colour, for the first few WL rounds."""

    colours: tuple[Colours, ...]
    """per round: the colours seen, ascending"""
    counts: tuple[Ints, ...]
    """per round: how many nodes have each"""

    @classmethod
    def fit(cls, graphs: Graphs, *, rounds: int = 3) -> Ranking:
        if rounds < 1:
            raise ConfigError(f"rarity needs at least 1 round of colours, got {rounds}")
        seen = [np.unique(colour, return_counts=True) for colour in wl_rounds(graphs, rounds)]
        return cls(tuple(colours for colours, _ in seen), tuple(counts for _, counts in seen))

    def neighbours(self, graphs: Graphs, k: int, *, max_hops: int = 1, order: Order | None = None) -> Ints:
        """(N, k) node ids, -1 where absent; ``order`` saves working :meth:`order` out again."""
        if k < 1 or max_hops < 1:
            raise ConfigError(f"k and max_hops must be at least 1, got {k} and {max_hops}")
        order = self.order(graphs) if order is None else order
        table = _adjacent(graphs, order, k)
        if max_hops > 1:
            _fill_up(table, graphs, order.place, max_hops)
        return table

    def order(self, graphs: Graphs) -> Order:
        """Put all nodes of the collection in the order of rules 3 to 5."""
        keys: list[NDArray[np.generic]] = []
        for colour, seen, counts in zip(wl_rounds(graphs, len(self.colours)), self.colours, self.counts, strict=True):
            keys += [_look_up(colour, seen, counts), colour]
        stable = stable_colours(graphs, colour, most=MOST_ROUNDS)
        nodes = np.lexsort([stable, *keys[::-1]])  # lexsort takes the last key first, and keeps node ids in order
        count = np.arange(len(nodes))
        first = np.zeros(len(nodes), np.int64)
        first[1:] = np.where(stable[nodes[1:]] != stable[nodes[:-1]], count[1:], 0)
        place, tier = np.empty_like(nodes), np.empty_like(nodes)
        tier[nodes] = np.maximum.accumulate(first)
        nodes = np.argsort(settle(graphs, stable, tier, most_rounds=MOST_ROUNDS), kind="stable")
        place[nodes] = count
        return Order(nodes, place, tier)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Plain arrays, to be saved with a model."""
        names = range(1, len(self.colours) + 1)
        colours = {f"colours.{r}": c for r, c in zip(names, self.colours, strict=True)}
        return {**colours, **{f"counts.{r}": c for r, c in zip(names, self.counts, strict=True)}}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> Ranking:
        names = range(1, len(state) // 2 + 1)
        return cls(
            tuple(state[f"colours.{r}"].astype(np.uint64) for r in names),
            tuple(state[f"counts.{r}"].astype(np.int64) for r in names),
        )


def _look_up(colour: Colours, colours: Colours, counts: Ints) -> Ints:
    """How often each node's colour was seen; 0 for one that was not."""
    if len(colours) == 0:
        return np.zeros(len(colour), np.int64)
    at = np.minimum(np.searchsorted(colours, colour), len(colours) - 1)
    return np.where(colours[at] == colour, counts[at], 0)


def _adjacent(graphs: Graphs, order: Order, k: int) -> Ints:
    """The first k adjacent nodes of every node by weight, place in the order, and label of the edge."""
    node, neighbour = graphs.entry_node.astype(np.int64), graphs.indices
    proper = node != neighbour
    node, neighbour = node[proper], neighbour[proper]
    if graphs.edge_weight is None and graphs.edge_label is None:
        # one key sorts by node and place together: much faster than two keys on millions of entries
        node, at = np.divmod(np.sort(node * max(graphs.n_nodes, 1) + order.place[neighbour]), max(graphs.n_nodes, 1))
        neighbour = order.nodes[at]
    else:
        heavy = np.zeros(len(node)) if graphs.edge_weight is None else graphs.edge_weight[proper]
        label = np.zeros(len(node)) if graphs.edge_label is None else graphs.edge_label[proper]
        by = np.lexsort((order.place[neighbour], label, order.tier[neighbour], -heavy, node))
        node, neighbour = node[by], neighbour[by]
    rank = _rank_in_row(node)
    table = np.full((graphs.n_nodes, k), -1, np.int32)
    table[node[rank < k], rank[rank < k]] = neighbour[rank < k]
    return table


def _rank_in_row(node: Ints) -> Ints:
    """0, 1, 2, ... within every run of equal numbers."""
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    return np.arange(len(node)) - np.repeat(starts, np.diff(starts, append=len(node)))


def _fill_up(table: Ints, graphs: Graphs, place: Ints, max_hops: int) -> None:
    """Write nodes 2 to ``max_hops`` hops away into the free ranks of the table."""
    for rows in _portions(np.flatnonzero(table[:, -1] < 0), graphs):
        frontier = _unique_pairs(*_expand(rows, rows, graphs), graphs.n_nodes)
        seen = np.union1d(frontier, rows * graphs.n_nodes + rows)
        for _ in range(2, max_hops + 1):
            start, reached = np.divmod(frontier, graphs.n_nodes)
            farther = _unique_pairs(*_expand(start, reached, graphs), graphs.n_nodes)
            frontier = np.setdiff1d(farther, seen, assume_unique=True)
            node, reached = np.divmod(frontier, graphs.n_nodes)
            by = np.lexsort((place[reached], node))
            node, reached = node[by], reached[by]
            rank = (table[node] >= 0).sum(axis=1) + _rank_in_row(node)
            fits = rank < table.shape[1]
            table[node[fits], rank[fits]] = reached[fits]
            seen = np.union1d(seen, frontier)
            frontier = frontier[table[frontier // graphs.n_nodes, -1] < 0]
            if len(frontier) == 0:
                break


def _unique_pairs(start: Ints, reached: Ints, n_nodes: int) -> Ints:
    return np.unique(start * n_nodes + reached)


def _expand(start: Ints, reached: Ints, graphs: Graphs) -> tuple[Ints, Ints]:
    """Pairs (start, reached) -> pairs (start, a neighbour of reached)."""
    entries = ranges(graphs.indptr[reached], graphs.indptr[reached + 1])
    return np.repeat(start, graphs.degree[reached]), graphs.indices[entries].astype(np.int64)


def _portions(rows: Ints, graphs: Graphs) -> Iterator[Ints]:
    """Cut the rows so that their two-hop neighbourhoods together stay within bounds."""
    two_hops = np.diff(pointers(graphs.degree[graphs.indices])[graphs.indptr])
    portion = np.cumsum(two_hops[rows]) // PAIRS_AT_ONCE
    yield from np.split(rows, np.flatnonzero(np.diff(portion)) + 1) if len(rows) else []
