"""Rank the neighbours of every node: Graphs -> (N, K) table of node ids, -1 where absent.

The order among the neighbours of a node decides which filter sees which neighbour, so it must not depend on how
the nodes happen to be numbered. In order of precedence:

1. heavier edge first, where edges have weights;
2. rarer colour first, by how often training graphs have the 1-WL colour, or never: it says most about its ego network;
3. ties: the 1-WL colour itself, then rarity and colour after 2 and 3 rounds, then the colour that stays stable,
   which also sees node attributes and edge weights, then the label of the edge;
4. what is still tied: node id, each choice carried as far as it tells nodes apart (:func:`settle`).

Rule 4 decides only between nodes that Weisfeiler-Lehman cannot tell apart at all. Mostly these are symmetric (hydrogens
of a methyl group, two equal cliques that share a node), and then ids change nothing. Where they are not (regular graphs
with triangles, such as a ring of six joined to two rings of three), renumbering may change a prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import check_value
from egocnn.data.arrays import Bools, Ints, bits, equal_rows, mix, ranges, row_portions, starts, sum_rows
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.colours import COUNTED_ROUNDS, Colours, stable_colours, wl_rounds
from egocnn.encode.colours import MOST_ROUNDS as MOST_ROUNDS

MOST_TIES = 32  # a graph with more (a thread with hundreds of like answers) keeps the order of ids: bounds the time
CHOSEN = np.uint64(0xA0761D6478BD642F)  # Any 64-bit number but 0: what it is mixed into becomes another colour.


def rank_neighbours(graphs: Any, k: int = 16, *, ranking: "Ranking | None" = None) -> Ints:
    """Rank the neighbours of every node, and keep the first ``k``.

    Arguments:
        graphs: The graphs, nodes counted through all of them; anything that :func:`egocnn.read` takes.
        k: How many neighbours to keep per node, the node itself not counted.
        ranking: Colour counts of training graphs; without it, rarity is counted over ``graphs`` themselves.

    Returns:
        (N, k) node ids, -1 where absent; the node itself is never in its row.

    Raises:
        ConfigError: ``k`` is below 1.

    Example:
        >>> import numpy as np
        >>> import egocnn
        >>> edges = np.array([[0, 1], [0, 2], [0, 3]])
        >>> star = egocnn.Graphs.from_edges(node_counts=[4], edges=edges)
        >>> egocnn.rank_neighbours(star, k=2)
        array([[ 1,  2],
               [ 0, -1],
               [ 0, -1],
               [ 0, -1]], dtype=int32)"""
    graphs = read(graphs)
    return (Ranking.fit(graphs) if ranking is None else ranking).neighbours(graphs, k)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """All nodes (N) of a collection, from the one to be ranked first to the one to be ranked last."""

    nodes: Ints
    place: Ints  # where each node stands in ``nodes``
    tier: Ints  # the first place among its equals: the same for nodes that no colour tells apart

    def within(self, graphs: Graphs) -> Ints:
        """(N) where each node stands among those of its own graph"""
        nodes = np.argsort(graphs.graph_of * graphs.n_nodes + self.place)  # by graph, then by place
        rank = np.empty_like(nodes)
        rank[nodes] = np.arange(len(nodes)) - graphs.node_ptr[graphs.graph_of[nodes]]
        return rank


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """How often the training graphs have each colour, for the first few WL rounds."""

    colours: tuple[Colours, ...]  # per round: the colours seen, ascending
    counts: tuple[Ints, ...]  # per round: how many nodes have each

    @classmethod
    def fit(cls, graphs: Graphs) -> "Ranking":
        """Count the colours of training graphs."""
        seen = [np.unique(colour, return_counts=True) for colour in wl_rounds(graphs, COUNTED_ROUNDS)]
        return cls(tuple(colours for colours, _ in seen), tuple(counts for _, counts in seen))

    def neighbours(self, graphs: Graphs, k: int, *, order: Order | None = None) -> Ints:
        """(N, k) node ids, -1 where absent; ``order`` saves working :meth:`order` out again."""
        check_value("k", k)
        return _first_neighbours(graphs, self.order(graphs) if order is None else order, k)

    def order(self, graphs: Graphs) -> Order:
        """Put all nodes of the collection in the order of rules 2 to 4."""
        tier: Ints = np.zeros(graphs.n_nodes, np.int64)
        for colour, seen, counts in zip(wl_rounds(graphs, COUNTED_ROUNDS), self.colours, self.counts, strict=True):
            tier, _ = _part_tiers(tier, colour, seen, counts)
        stable = stable_colours(graphs, colour, most=MOST_ROUNDS)
        tier, sizes = _part_tiers(tier, stable, stable[:0], tier[:0])  # never counted: all are as rare
        is_tied = len(sizes) < graphs.n_nodes
        settled = settle(graphs, stable, tier, most_rounds=MOST_ROUNDS) if is_tied else tier
        itself = np.arange(graphs.n_nodes)
        nodes = np.argsort(settled * graphs.n_nodes + itself)  # no two alike: a stable sort takes seven times as long
        place = np.empty_like(nodes)
        place[nodes] = itself
        return Order(nodes, place, tier)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Plain arrays, to be saved with a model."""
        names = range(1, len(self.colours) + 1)
        colours = {f"colours.{r}": c for r, c in zip(names, self.colours, strict=True)}
        return {**colours, **{f"counts.{r}": c for r, c in zip(names, self.counts, strict=True)}}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> "Ranking":
        names = range(1, len(state) // 2 + 1)
        colours = tuple(state[f"colours.{r}"].astype(np.uint64) for r in names)
        return cls(colours, tuple(state[f"counts.{r}"].astype(np.int64) for r in names))


def _part_tiers(tier: Ints, colour: Colours, seen: Colours, counts: Ints) -> tuple[Ints, Ints]:
    """Tiers (N) parted by rarity and then by colour, and the sizes of the colours' classes (C). ``seen``: colours,
    ascending, and ``counts``: how often training graphs have each, 0 where they lack one. A tier counts the nodes
    before it. Colours only become finer, so nodes of one colour share a tier: to place one of them will do."""
    nodes = np.argsort(colour)  # in any order among equals
    ordered = colour[nodes]
    first = starts(ordered)
    sizes = np.diff(first, append=len(nodes))
    rarity = np.zeros_like(sizes)
    if len(seen):
        at = np.minimum(np.searchsorted(seen, ordered[first]), len(seen) - 1)
        rarity = np.where(seen[at] == ordered[first], counts[at], 0)
    # stable: the colours ascend already
    by = np.argsort(tier[nodes[first]] * (rarity.max(initial=0) + 1) + rarity, kind="stable")
    before = np.empty_like(sizes)
    before[by] = np.cumsum(sizes[by]) - sizes[by]
    parted = np.empty_like(tier)
    parted[nodes] = np.repeat(before, sizes)
    return parted, sizes


def _first_neighbours(graphs: Graphs, order: Order, k: int) -> Ints:
    """The first k neighbours of every node by weight, place in the order, and label of the edge."""
    table = np.full((graphs.n_nodes, k), -1, np.int32)
    place, nodes = order.place.astype(np.int32), np.append(order.nodes, -1).astype(np.int32)
    for rows, entries in equal_rows(graphs.indptr):
        neighbours = graphs.indices[entries]
        is_loop = neighbours == rows[:, None].astype(np.int32)
        if graphs.edge_weight is None and graphs.edge_label is None:
            # clip: no neighbour is out of range, and to check each once more takes as long as to fetch it
            places = np.take(place, neighbours, out=np.empty_like(place, shape=neighbours.shape), mode="clip")
            places[is_loop] = graphs.n_nodes
            places.sort(axis=1)
            ranked = nodes[places[:, :k]]
        else:
            heavy = np.zeros((1, 1)) if graphs.edge_weight is None else graphs.edge_weight[entries]
            label = np.zeros((1, 1)) if graphs.edge_label is None else graphs.edge_label[entries]
            keys = (place[neighbours], label, order.tier[neighbours], -heavy, is_loop)  # the last counts most
            by = np.lexsort(np.broadcast_arrays(*keys), axis=1)[:, :k]
            ranked = np.take_along_axis(np.where(is_loop, -1, neighbours), by, axis=1)
        table[rows, : ranked.shape[1]] = ranked
    return table


def settle(graphs: Graphs, colour: Colours, tier: Ints, *, most_rounds: int) -> Ints:
    """Tiers (N), equal where stable colours are -> finer tiers (N), equal only for twins, hardly by node ids.

    Nodes that no colour tells apart are mostly symmetric to each other, and any one of them may go first. But the
    choices must agree: where two cliques of equal size meet in a node, taking its neighbours by their ids would mix the
    members of both. So one node of a tie is set apart, by its id, and refining the colours again carries the choice to
    every node that stands nearer to it than the rest; and so on until only twins are tied, nodes with the very same
    neighbours. Where the nodes of a tie are symmetric, the outcome is the same ordered graph whatever their ids; else
    (some regular graphs), ids decide."""
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
