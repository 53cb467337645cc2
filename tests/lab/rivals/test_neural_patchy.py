"""Canonical orders, receptive fields and the two networks that read sequences of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("igraph", reason="igraph is not installed")

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from lab.rivals.networks.canonical import canonical_nodes, canonical_order
from lab.rivals.networks.encoding import Encoding, Shape
from lab.rivals.networks.patchy import FIELD, Fields, PatchySanConvolutions, PatchySanNetwork, patch_shape, read_fields
from tests.support.samples import cycle, molecules, one_graph

CPU = torch.device("cpu")


def renumbered(graphs: Graphs, number: Ints) -> Graphs:
    """One graph whose node n is now called number[n]."""
    assert graphs.node_label is not None
    label = np.empty_like(graphs.node_label)
    label[number] = graphs.node_label
    return Graphs.from_edges(
        node_counts=[graphs.n_nodes],
        edges=number[graphs.edges],
        node_label=label,
        node_label_names=graphs.node_label_names,
    )


def canonical_form(graphs: Graphs) -> tuple[list[int], list[tuple[int, int]]]:
    """Labels and edges by place in the canonical order."""
    order = canonical_order(graphs)
    assert graphs.node_label is not None
    edges = np.sort(order.place[graphs.edges], axis=1).tolist()
    return graphs.node_label[order.nodes].tolist(), sorted((u, v) for u, v in edges)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_the_canonical_form_does_not_know_how_nodes_were_numbered(n_nodes: int, seed: int, leafy: bool) -> None:
    random = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(random.random((n_nodes, n_nodes)) < 0.4, 1))
    if leafy:
        edges = np.array([(random.integers(max(n // 3, 1)), n) for n in range(1, n_nodes)], np.int64).reshape(-1, 2)
    graphs = Graphs.from_edges(
        node_counts=[n_nodes], edges=edges, node_label=random.integers(0, 2, n_nodes), node_label_names=("C", "O")
    )
    assert canonical_form(renumbered(graphs, random.permutation(n_nodes))) == canonical_form(graphs)


def test_the_canonical_form_parts_what_weisfeiler_and_lehman_cannot() -> None:
    """A ring of six beside two rings of three: all degrees are 2, and colours are all the same."""
    rings = one_graph(12, cycle(0, 1, 2, 3, 4, 5) + cycle(6, 7, 8) + cycle(9, 10, 11), node_label=["C"] * 12)
    random = np.random.default_rng(0)
    forms = {str(canonical_form(renumbered(rings, random.permutation(12)))) for _ in range(10)}
    assert len(forms) == 1


def test_the_nodes_of_the_canonical_form_are_listed_and_not_their_places() -> None:
    """A star of four, its middle called 1: whoever confuses a permutation with its inverse finds another middle."""
    for middle in range(4):
        star = one_graph(4, [(middle, leaf) for leaf in range(4) if leaf != middle])
        listed = canonical_nodes(star, np.arange(4), np.zeros(4, np.int64)).tolist()
        assert sorted(listed) == [0, 1, 2, 3]
        assert listed.index(middle) == 3  # BLISS lists the leaves first


def test_the_leaves_of_a_hub_are_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def searching(graphs: Graphs, nodes: Ints, colour: Ints) -> Ints:
        searched.append(len(nodes))
        return canonical_nodes(graphs, nodes, colour)

    monkeypatch.setattr("lab.rivals.networks.canonical.canonical_nodes", searching)
    star = [(0, leaf) for leaf in range(1, 50)]
    canonical_order(one_graph(50, star))
    assert searched == []
    twice = [(u + 50, v + 50) for u, v in star]
    order = canonical_order(one_graph(100, [*star, *twice, (0, 50)]))
    assert searched == [4]  # two hubs and a leaf of each
    assert sorted(order.nodes[:2].tolist()) == [0, 50]


def test_cliques_that_share_a_node_are_no_search() -> None:
    """Two of 40 nodes each: more symmetries than a search without twins could go through node by node."""
    cliques = [[0, *range(1, 41)], [0, *range(41, 81)]]
    edges = [(u, v) for clique in cliques for u in clique for v in clique if u < v]
    graphs = one_graph(81, edges, node_label=["C"] * 81)
    order = canonical_order(graphs)
    assert order.nodes[0] == 0
    halves = order.nodes[1:] > 40
    assert (halves[:40] == halves[0]).all()
    assert (halves[40:] == ~halves[0]).all()
    assert canonical_form(renumbered(graphs, np.random.default_rng(0).permutation(81))) == canonical_form(graphs)


def test_nodes_of_many_neighbours_come_first_and_graph_after_graph() -> None:
    graphs = Graphs.from_edges(node_counts=[4, 0, 3], edges=np.array([[1, 0], [1, 2], [1, 3], [4, 6], [5, 6]]))
    order = canonical_order(graphs)
    assert order.nodes[0] == 1
    assert order.nodes[4] == 6
    assert sorted(order.nodes[:4].tolist()) == [0, 1, 2, 3]
    assert order.nodes[order.place].tolist() == list(range(7))


def fields_of(graphs: Graphs) -> tuple[Shape, Fields]:
    encoded = Encoding.fit(graphs).encode(graphs)
    shape = Shape.of(encoded)
    return shape, read_fields(encoded, shape)


def test_a_field_is_filled_with_nodes_several_hops_away() -> None:
    chain = one_graph(30, [(i, i + 1) for i in range(29)])
    shape, fields = fields_of(chain)
    rows = patch_shape(shape)
    for node in (0, 10):
        mine = fields.patches.rows[fields.patches.ptr[node] : fields.patches.ptr[node + 1]]
        assert (mine < rows.edge_rows).sum() == FIELD - 1  # ten nodes in a row: nine edges
        assert (mine >= rows.edge_rows).sum() == FIELD


def test_a_sequence_is_as_long_as_training_graphs_are_on_average() -> None:
    graphs = Graphs.from_edges(node_counts=[30, 10, 0], edges=np.array([[0, 1], [30, 31]]))
    _, fields = fields_of(graphs)
    assert fields.sequence.shape == (3, 13)
    assert (fields.sequence[0] >= 0).all()
    assert sorted(fields.sequence[1, :10].tolist()) == list(range(30, 40))
    assert (fields.sequence[1, 10:] == -1).all()
    assert (fields.sequence[2] == -1).all()


def test_filters_read_the_labelled_adjacency_tensor_of_each_field() -> None:
    graphs = molecules()
    encoding = Encoding.fit(graphs)
    encoded = encoding.encode(graphs)
    shape = Shape.of(encoded)
    fields = read_fields(encoded, shape)
    torch.manual_seed(0)
    filters = PatchySanNetwork(shape).filters
    torch.nn.init.normal_(filters.bias)
    batch = fields.cut(np.array([2, 0]), CPU)
    seen = filters(batch)
    assert seen.shape == (2, FIELD, 16)
    place = int(np.flatnonzero(fields.sequence[2] == 7)[0])  # the node with nothing but a loop of weight 7
    assert encoded.node_label is not None
    assert encoded.node_attr is not None
    rows = patch_shape(shape)
    expected = filters.bias + torch.from_numpy(encoded.node_attr[7]) @ filters.attributes[:2]
    expected = expected + filters.table[rows.edge_rows + int(encoded.node_label[7])]
    torch.testing.assert_close(seen[0, place], expected)  # the loop's own label is unknown
    torch.testing.assert_close(seen[1, 3:], filters.bias.expand(FIELD - 3, -1))  # water has three nodes
    assert batch.present.tolist() == [[1] * 4 + [0] * 6, [1] * 3 + [0] * 7]


def test_the_supplements_network_has_as_many_weights_as_its_ego_cnn() -> None:
    shape, _ = fields_of(molecules())
    network = PatchySanConvolutions(shape)
    convolutions = sum(p.numel() for p in network.convs.parameters())
    assert convolutions == 5 * (17 * 128 * 128 + 128)
