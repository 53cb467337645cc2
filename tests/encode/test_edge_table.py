from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.graphs import Graphs
from egocnn.encode import patches as module
from egocnn.encode.patches import EdgeTable
from tests.support.strategies import random_graphs


def assert_finds_every_edge_and_no_other(graphs: Graphs) -> None:
    table = EdgeTable(graphs)
    expected = np.full((graphs.n_nodes, graphs.n_nodes), -1)
    for entry, (node, neighbour) in enumerate(zip(graphs.entry_node, graphs.indices, strict=True)):
        if node <= neighbour:
            expected[node, neighbour] = expected[neighbour, node] = entry
    u, v = (ends.ravel() for ends in np.indices(expected.shape))
    np.testing.assert_array_equal(table.find(u, v), expected.ravel())


@settings(max_examples=150)
@given(random_graphs())
def test_an_edge_is_found_from_either_end_and_where_there_is_none_nothing_is(graphs: Graphs) -> None:
    assert_finds_every_edge_and_no_other(graphs)


@pytest.mark.parametrize("edges_at_once", [10, 1 << 17])
def test_edges_that_compete_for_a_slot_are_all_found(edges_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EDGES_AT_ONCE", edges_at_once)
    edges = np.random.default_rng(0).integers(0, 300, (3000, 2))
    graphs = Graphs.from_edges(node_counts=[300], edges=edges)
    assert len(EdgeTable(graphs).tables) > 1
    assert_finds_every_edge_and_no_other(graphs)


def orderly(kind: str) -> Graphs:
    node = np.arange(2000)
    pairs = {
        "path": np.stack([node[:-1], node[1:]], axis=1),
        "star": np.stack([np.zeros_like(node), node], axis=1),
        "loops": np.stack([node, node], axis=1),
        "clique": np.stack(np.triu_indices(200), axis=1),
        "powers": np.concatenate([np.stack([node[: -(2**k)], node[2**k :]], axis=1) for k in range(10)]),
    }
    return Graphs.from_edges(node_counts=[2000], edges=pairs[kind])


@pytest.mark.parametrize("kind", ["path", "star", "loops", "clique", "powers"])
def test_orderly_graphs_do_not_crowd_the_slots(kind: str) -> None:
    """Most edges stand in the first table: a few steps find any of them."""
    graphs = orderly(kind)
    tables = EdgeTable(graphs).tables
    assert (tables[0] >= 0).sum() > 0.7 * graphs.n_edges
    assert len(tables) < 12
