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


PATH, RING = nx.path_graph(10), nx.cycle_graph(6)
LOLLIPOP = nx.Graph([(0, 1), (1, 2), (1, 3), (3, 4)])  # two leaves and an arm around node 1


@pytest.mark.parametrize(
    ("graph", "nodes", "wanted"),
    [
        (PATH, (3,), [3]),
        (PATH, (3, 4), [3, 4]),
        (PATH, (3, 5), [3, 4, 5]),
        (PATH, (3, 6), [3, 4, 5, 6]),
        (PATH, (3, 7), [3, 7]),  # three nodes lie between
        (PATH, (0, 1, 4, 9), [0, 1, 2, 3, 4, 9]),
        (RING, (0, 3), [0, 1, 2, 3, 4, 5]),  # opposite sides become the whole ring
        (RING, (0, 2), [0, 1, 2]),
        (LOLLIPOP, (0, 2), [0, 1, 2]),  # what lies beside the way stays out
        (nx.disjoint_union(nx.path_graph(2), nx.path_graph(2)), (0, 2), [0, 2]),
    ],
)
def test_pieces_are_joined_over_two_nodes_by_all_shortest_ways_and_no_more(
    graph: nx.Graph, nodes: tuple[int, ...], wanted: list[int]
) -> None:
    assert joined(graphs_of(graph), np.array(nodes)).tolist() == wanted


def test_numbers_of_nodes_do_not_matter() -> None:
    graphs = graphs_of(nx.grid_2d_graph(3, 4))
    part = np.array([0, 5, 11])
    for seed in range(5):
        relabelled, new = relabel(graphs, seed)
        assert set(joined(relabelled, np.sort(new[part])).tolist()) == set(new[joined(graphs, part)].tolist())
