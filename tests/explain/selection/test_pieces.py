"""Pieces of a critical structure that stand close together."""

import networkx as nx
import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.data.sources.networkx import from_networkx
from egocnn.explain.selection.pieces import joined
from tests.support.invariance import relabel


def graphs_of(*several: nx.Graph) -> Graphs:
    return from_networkx(list(several))


def joined_nodes(graph: nx.Graph, *nodes: int) -> list[int]:
    found: list[int] = joined(graphs_of(graph), np.array(nodes)).tolist()
    return found


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ((3,), [3]),
        ((3, 4), [3, 4]),
        ((3, 5), [3, 4, 5]),
        ((3, 6), [3, 4, 5, 6]),
        ((3, 7), [3, 7]),  # three nodes lie between
        ((0, 1, 4, 9), [0, 1, 2, 3, 4, 9]),
    ],
)
def test_pieces_on_a_path_are_joined_over_two_nodes_and_no_more(nodes: tuple[int, ...], wanted: list[int]) -> None:
    assert joined_nodes(nx.path_graph(10), *nodes) == wanted


def test_opposite_sides_of_a_ring_become_the_whole_ring() -> None:
    assert joined_nodes(nx.cycle_graph(6), 0, 3) == [0, 1, 2, 3, 4, 5]
    assert joined_nodes(nx.cycle_graph(6), 0, 2) == [0, 1, 2]


def test_what_lies_beside_the_way_stays_out() -> None:
    lollipop = nx.Graph([(0, 1), (1, 2), (1, 3), (3, 4)])  # two leaves and an arm around node 1
    assert joined_nodes(lollipop, 0, 2) == [0, 1, 2]


def test_pieces_of_unconnected_molecules_stay_apart() -> None:
    assert joined_nodes(nx.disjoint_union(nx.path_graph(2), nx.path_graph(2)), 0, 2) == [0, 2]


def test_numbers_of_nodes_do_not_matter() -> None:
    graphs = graphs_of(nx.grid_2d_graph(3, 4))
    part = np.array([0, 5, 11])
    for seed in range(5):
        relabelled, new = relabel(graphs, seed)
        assert set(joined(relabelled, np.sort(new[part])).tolist()) == set(new[joined(graphs, part)].tolist())
