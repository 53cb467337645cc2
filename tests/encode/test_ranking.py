from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode import ranking as module
from egocnn.encode.colours import stable_colours, wl_rounds
from egocnn.encode.ranking import Ranking, rank_neighbours
from egocnn.errors import ConfigError, DataError
from tests.support.invariance import relabel
from tests.support.samples import cycle, one_graph, sure
from tests.support.strategies import random_connected, random_graphs


def naive_table(train: Graphs, graphs: Graphs, k: int) -> Ints:
    """The ranking as its module describes it: every neighbour gets its whole key, then they are sorted."""
    counts = [Counter(colour.tolist()) for colour in wl_rounds(train, 3)]
    *_, last = rounds = list(wl_rounds(graphs, 3))
    colours = [colour.tolist() for colour in rounds]
    stable = stable_colours(graphs, last, most=module.MOST_ROUNDS).tolist()
    place = Ranking.fit(train).order(graphs).place.tolist()
    entry = {
        (int(u), int(v)): number for number, (u, v) in enumerate(zip(graphs.entry_node, graphs.indices, strict=True))
    }

    def key(node: int, other: int) -> tuple[Any, ...]:
        at = entry[node, other]
        weight = 0.0 if graphs.edge_weight is None else float(graphs.edge_weight[at])
        label = 0 if graphs.edge_label is None else int(graphs.edge_label[at])
        rarity = [(count[colour[other]], colour[other]) for count, colour in zip(counts, colours, strict=True)]
        return -weight, *rarity, stable[other], label, place[other]

    table = np.full((graphs.n_nodes, k), -1)
    for node in range(graphs.n_nodes):
        others = graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]].tolist()
        best = sorted(set(others) - {node}, key=lambda other: key(node, other))[:k]
        table[node, : len(best)] = best
    return table


@settings(max_examples=150)
@given(random_graphs(unseen=True), random_graphs(unseen=True), st.integers(1, 6))
def test_the_table_is_what_sorting_by_the_whole_key_gives(train: Graphs, graphs: Graphs, k: int) -> None:
    table = Ranking.fit(train).neighbours(graphs, k)
    np.testing.assert_array_equal(table, naive_table(train, graphs, k))


def test_larger_graphs_are_ranked_by_the_same_key() -> None:
    graphs = random_connected(5, nodes=25, extra=12, seed=1)
    np.testing.assert_array_equal(rank_neighbours(graphs, 8), naive_table(graphs, graphs, 8))


def test_heavier_edges_come_first_whatever_the_colours() -> None:
    star = one_graph(4, [(0, 1), (0, 2), (0, 3)], edge_weight=[0.5, 3.0, 1.0], node_label=[*"CNOC"])
    assert rank_neighbours(star, 3)[0].tolist() == [2, 3, 1]
    negative = one_graph(4, [(0, 1), (0, 2), (0, 3)], edge_weight=[-0.5, -3.0, 0.0])
    assert rank_neighbours(negative, 3)[0].tolist() == [3, 1, 2]


def star_of(leaves: str) -> Graphs:
    """Around a C; labels are counted alike in all of them."""
    labels = np.array(["CNO".index(name) for name in f"C{leaves}"])
    star = one_graph(1 + len(leaves), [(0, leaf) for leaf in range(1, len(leaves) + 1)])
    return star.replace(node_label=labels, node_label_names=("C", "N", "O"))


def test_rarity_is_counted_over_the_training_graphs_alone() -> None:
    test = star_of("NNO")
    assert Ranking.fit(star_of("NOOO")).neighbours(test, 3)[0].tolist() == [1, 2, 3]
    assert Ranking.fit(star_of("NNNO")).neighbours(test, 3)[0].tolist() == [3, 1, 2]


def test_a_colour_that_training_never_saw_is_the_rarest() -> None:
    both, without_oxygen = Graphs.concat([star_of("N"), star_of("OOO")]), star_of("N")
    assert Ranking.fit(both).neighbours(star_of("NO"), 2)[0].tolist() == [1, 2]
    assert Ranking.fit(without_oxygen).neighbours(star_of("NO"), 2)[0].tolist() == [2, 1]


def test_the_label_of_the_edge_decides_between_neighbours_of_one_colour() -> None:
    """Benzene with alternating bonds: all six atoms are alike, the two bonds of an atom are not."""
    bonds = ["single", "double"] * 3
    for seed in range(5):
        ring, _ = relabel(one_graph(6, cycle(0, 1, 2, 3, 4, 5), edge_label=bonds), seed)
        label = {
            (int(u), int(v)): int(code)
            for u, v, code in zip(ring.entry_node, ring.indices, sure(ring.edge_label), strict=True)
        }
        table = rank_neighbours(ring, 2)
        assert len({(label[node, int(a)], label[node, int(b)]) for node, (a, b) in enumerate(table)}) == 1


@given(random_graphs(max_graphs=5), st.data())
def test_the_order_within_a_graph_does_not_depend_on_its_companions(graphs: Graphs, data: st.DataObject) -> None:
    fitted = Ranking.fit(graphs)
    chosen = data.draw(st.integers(0, len(graphs) - 1))
    first = int(graphs.node_ptr[chosen])
    together = fitted.order(graphs).place[first : int(graphs.node_ptr[chosen + 1])]
    alone = fitted.order(graphs[[chosen]]).place
    np.testing.assert_array_equal(np.argsort(together), np.argsort(alone))


@given(random_graphs())
def test_the_order_lists_every_node_once_and_ties_share_a_tier(graphs: Graphs) -> None:
    order = Ranking.fit(graphs).order(graphs)
    assert sorted(order.nodes) == list(range(graphs.n_nodes))
    assert (order.place[order.nodes] == np.arange(graphs.n_nodes)).all()
    *_, colour = wl_rounds(graphs, 3)
    stable = stable_colours(graphs, colour, most=module.MOST_ROUNDS)
    for one in range(graphs.n_nodes):
        for other in range(graphs.n_nodes):
            assert (order.tier[one] == order.tier[other]) == (stable[one] == stable[other])


@pytest.mark.parametrize("k", [0, -1, 1.5, None, "3", 10**30])
def test_sizes_that_are_no_whole_numbers_of_at_least_one_are_refused(k: Any) -> None:
    with pytest.raises(ConfigError, match="k must be a"):
        rank_neighbours(one_graph(2, [(0, 1)]), k)


def test_nothing_ranks_nothing() -> None:
    nothing = Graphs.from_edges(node_counts=[], edges=np.zeros((0, 2), int))
    assert rank_neighbours(nothing, 3).shape == (0, 3)
    assert Ranking.fit(nothing).neighbours(one_graph(2, [(0, 1)]), 1).tolist() == [[1], [0]]


def test_any_source_of_graphs_is_ranked_and_what_is_none_is_refused() -> None:
    import networkx as nx

    assert rank_neighbours(nx.path_graph(3), 2).tolist() == rank_neighbours([nx.path_graph(3)], 2).tolist()
    with pytest.raises(DataError, match="is not a source of graphs"):
        rank_neighbours(3, 2)
