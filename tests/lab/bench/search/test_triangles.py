"""Triangles are counted as networkx counts them, hubs and portions included."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.graphs import Graphs
from lab.bench.search import triangles
from lab.bench.search.triangles import count_triangles, with_triangles
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs


def by_networkx(graphs: Graphs) -> list[int]:
    network = networkx.Graph()
    network.add_nodes_from(range(graphs.n_nodes))
    network.add_edges_from(edge for edge in graphs.edges.tolist() if edge[0] != edge[1])
    found = networkx.triangles(network)
    return [found[node] for node in range(graphs.n_nodes)]


@settings(max_examples=80)
@given(random_graphs(max_nodes=9))
def test_every_triangle_counts_at_its_three_corners(graphs: Graphs) -> None:
    assert count_triangles(graphs).tolist() == by_networkx(graphs)


def test_the_count_is_the_same_in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    edges = np.unique(np.sort(random.integers(40, size=(250, 2)), axis=1), axis=0)
    graphs = one_graph(40, edges.tolist())
    monkeypatch.setattr(triangles, "PATHS_AT_ONCE", 20)
    assert count_triangles(graphs).tolist() == by_networkx(graphs)
    assert sum(by_networkx(graphs)) > 100


def test_a_hub_with_a_million_leaves_takes_no_paths_between_its_leaves() -> None:
    leaves = np.arange(1, 1_000_001)
    star = np.stack([np.zeros_like(leaves), leaves], axis=1)
    graphs = Graphs.from_edges(node_counts=[1_000_001], edges=np.concatenate([star, [[1, 2]]]))
    found = count_triangles(graphs)  # by way of the hub there are half a billion thousand paths
    assert found[:3].tolist() == [1, 1, 1]
    assert found.sum() == 3


def test_a_node_is_told_its_triangles_and_how_close_its_neighbours_stand() -> None:
    bow_tie = one_graph(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)], node_attr=[[float(n)] for n in range(5)])
    found = with_triangles(bow_tie).node_attr
    assert found is not None
    np.testing.assert_allclose(found[2], [2, np.log(3), 2 / 6], rtol=1e-6)
    np.testing.assert_allclose(found[[0, 1, 3, 4], 1:], [[np.log(2), 1]] * 4, rtol=1e-6)
