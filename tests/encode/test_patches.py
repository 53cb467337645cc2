import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode import patches as module
from egocnn.encode.patches import EdgeTable, Patches, find_patches
from egocnn.encode.ranking import rank_neighbours
from egocnn.nn.embed import PatchShape
from tests.support.samples import cycle, one_graph
from tests.support.strategies import random_graphs

Tensor = NDArray[np.float64]


def shape_of(graphs: Graphs, slots: int) -> PatchShape:
    return PatchShape(slots=slots, node_labels=len(graphs.node_label_names), edge_labels=len(graphs.edge_label_names))


def dense_patch(graphs: Graphs, table: Ints, node: int, shape: PatchShape) -> tuple[Tensor, Tensor]:
    """The labelled adjacency tensor (P, P, edge labels) and the node labels (P, node labels) around one node."""
    slots = [node, *table[node, : shape.slots - 1]]
    slots += [-1] * (shape.slots - len(slots))
    adjacency = np.zeros((shape.slots, shape.slots, max(shape.edge_labels, 1)))
    labels = np.zeros((shape.slots, shape.node_labels))
    for i, one in enumerate(slots):
        if one >= 0 and graphs.node_label is not None and graphs.node_label[one] >= 0:
            labels[i, graphs.node_label[one]] = 1
        for j, other in enumerate(slots):
            if one < 0 or other < 0:
                continue
            for entry in range(int(graphs.indptr[one]), int(graphs.indptr[one + 1])):
                label = 0 if graphs.edge_label is None else int(graphs.edge_label[entry])
                if graphs.indices[entry] == other and label >= 0:
                    adjacency[i, j, label] = 1 if graphs.edge_weight is None else graphs.edge_weight[entry]
    return adjacency, labels


def summed(patches: Patches, filters: Tensor) -> Tensor:
    """What an embedding-bag makes of the patches."""
    out = np.zeros((len(patches.ptr) - 1, filters.shape[1]))
    for node in range(len(out)):
        for at in range(int(patches.ptr[node]), int(patches.ptr[node + 1])):
            out[node] += filters[patches.rows[at]] * (1 if patches.weight is None else patches.weight[at])
    return out


@settings(max_examples=150)
@given(random_graphs(unseen=True, min_nodes=0), st.integers(1, 5), st.integers(1, 5))
def test_summed_rows_are_the_dense_tensor_times_a_filter(graphs: Graphs, slots: int, k: int) -> None:
    table, shape = rank_neighbours(graphs, k), shape_of(graphs, slots)
    random = np.random.default_rng(0)
    # a filter for every entry of the full tensor; of (i, j) and (j, i) the table holds the sum
    edge_filter = random.standard_normal((slots, slots, max(shape.edge_labels, 1), 3))
    label_filter = random.standard_normal((slots, shape.node_labels, 3))
    i, j = shape.pairs
    rows = np.where((i == j)[:, None, None], edge_filter[i, j], edge_filter[i, j] + edge_filter[j, i])
    filters = np.concatenate([rows.reshape(-1, 3), label_filter.reshape(-1, 3)])
    assert len(filters) == shape.rows

    out = summed(find_patches(graphs, table, shape), filters)

    for node in range(graphs.n_nodes):
        adjacency, labels = dense_patch(graphs, table, node, shape)
        expected = np.einsum("ijl,ijld->d", adjacency, edge_filter) + np.einsum("il,ild->d", labels, label_filter)
        np.testing.assert_allclose(out[node], expected, atol=1e-9)


def test_few_nodes_at_a_time_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = one_graph(7, [*cycle(0, 1, 2, 3), (3, 4), (4, 5)], node_label=[*"CCNCOCC"], edge_weight=range(6))
    table, shape = rank_neighbours(graphs, 3), shape_of(graphs, 4)
    whole = find_patches(graphs, table, shape)
    monkeypatch.setattr(module, "NODES_AT_ONCE", 2)
    cut = find_patches(graphs, table, shape)
    for one, other in ((whole.ptr, cut.ptr), (whole.rows, cut.rows), (whole.weight, cut.weight)):
        assert one is not None
        np.testing.assert_array_equal(one, other)


# ── looking edges up ──────────────────────────────────────────────────────────────────────────────


def assert_finds_every_edge_and_no_other(graphs: Graphs) -> None:
    table = EdgeTable(graphs)
    expected = np.full((graphs.n_nodes, graphs.n_nodes), -1)
    for entry, (node, neighbour) in enumerate(zip(graphs.entry_node, graphs.indices, strict=True)):
        if node <= neighbour:
            expected[node, neighbour] = expected[neighbour, node] = entry
    u, v = (ends.ravel() for ends in np.indices(expected.shape))
    np.testing.assert_array_equal(table.find(u, v), expected.ravel())


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
