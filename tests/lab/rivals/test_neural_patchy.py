"""Canonical orders, receptive fields, nearest nodes, and the two networks that read sequences of them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("igraph", reason="igraph is not installed")

from egocnn.data.graphs import Graphs
from egocnn.encode.ranking import Ranking
from lab.rivals.networks import reach
from lab.rivals.networks.canonical import canonical_nodes, canonical_order
from lab.rivals.networks.encoding import Encoding, Shape
from lab.rivals.networks.patchy import FIELD, Fields, PatchySanConvolutions, PatchySanNetwork, patch_shape, read_fields
from tests.support.invariance import relabel
from tests.support.samples import as_list, cycle, molecules, one_graph, sure
from tests.support.strategies import random_connected

CPU = torch.device("cpu")


def canonical_form(graphs: Graphs) -> tuple[list[int], list[tuple[int, int]]]:
    """Labels and edges by place in the canonical order."""
    order = canonical_order(graphs)
    edges = np.sort(order.place[graphs.edges], axis=1).tolist()
    labels = as_list(graphs.node_label)
    return [labels[node] for node in order.nodes], sorted((u, v) for u, v in edges)


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_the_canonical_form_does_not_know_how_nodes_were_numbered(n_nodes: int, seed: int, leafy: bool) -> None:
    random = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(random.random((n_nodes, n_nodes)) < 0.4, 1))
    if leafy:
        edges = np.array([(random.integers(max(n // 3, 1)), n) for n in range(1, n_nodes)], np.int64).reshape(-1, 2)
    graphs = Graphs.from_edges(
        node_counts=[n_nodes], edges=edges, node_label=random.integers(0, 2, n_nodes), node_label_names=("C", "O")
    )
    assert canonical_form(relabel(graphs, seed)[0]) == canonical_form(graphs)


def test_symmetries_that_no_colours_part_are_settled_and_many_twins_are_no_search() -> None:
    """Rings of equal degrees, and two cliques of 40 that share a node: too many symmetries to go through one by one."""
    rings = one_graph(12, cycle(0, 1, 2, 3, 4, 5) + cycle(6, 7, 8) + cycle(9, 10, 11), node_label=["C"] * 12)
    assert len({str(canonical_form(relabel(rings, seed)[0])) for seed in range(10)}) == 1
    cliques = [[0, *range(1, 41)], [0, *range(41, 81)]]
    edges = [(u, v) for clique in cliques for u in clique for v in clique if u < v]
    graphs = one_graph(81, edges, node_label=["C"] * 81)
    order = canonical_order(graphs)
    halves = order.nodes[1:] > 40
    assert order.nodes[0] == 0
    assert (halves == ([halves[0]] * 40 + [not halves[0]] * 40)).all()
    assert canonical_form(relabel(graphs)[0]) == canonical_form(graphs)


def fields_of(graphs: Graphs) -> tuple[Shape, Fields]:
    encoded = Encoding.fit(graphs).encode(graphs)
    shape = Shape.of(encoded)
    return shape, read_fields(encoded, shape)


def test_nodes_of_many_neighbours_come_first_and_graph_after_graph() -> None:
    graphs = Graphs.from_edges(node_counts=[4, 0, 3], edges=np.array([[1, 0], [1, 2], [1, 3], [4, 6], [5, 6]]))
    order = canonical_order(graphs)
    assert (order.nodes[0], order.nodes[4], set(order.nodes[:4].tolist())) == (1, 6, {0, 1, 2, 3})
    assert order.nodes[order.place].tolist() == list(range(7))
    star = one_graph(4, [(1, leaf) for leaf in (0, 2, 3)])
    assert (
        canonical_nodes(star, np.arange(4), np.zeros(4, np.int64))[3] == 1
    )  # nodes and not places; BLISS: leaves first


def test_a_field_is_filled_with_nodes_several_hops_away_and_a_sequence_as_long_as_the_average_graph() -> None:
    chain = one_graph(30, [(i, i + 1) for i in range(29)])
    shape, fields = fields_of(chain)
    rows = patch_shape(shape)
    for node in (0, 10):
        mine = fields.patches.rows[fields.patches.ptr[node] : fields.patches.ptr[node + 1]]
        assert (mine < rows.edge_rows).sum() == FIELD - 1  # ten nodes in a row: nine edges
        assert (mine >= rows.edge_rows).sum() == FIELD
    fields = fields_of(Graphs.from_edges(node_counts=[30, 10, 0], edges=np.array([[0, 1], [30, 31]])))[1]
    assert fields.sequence.shape == (3, 13)
    assert (fields.sequence[0] >= 0).all()
    assert sorted(fields.sequence[1].tolist()) == [-1, -1, -1, *range(30, 40)]
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
    rows = patch_shape(shape)
    expected = filters.bias + torch.from_numpy(sure(encoded.node_attr)[7]) @ filters.attributes[:2]
    expected = expected + filters.table[rows.edge_rows + int(sure(encoded.node_label)[7])]
    torch.testing.assert_close(seen[0, place], expected)  # the loop's own label is unknown
    torch.testing.assert_close(seen[1, 3:], filters.bias.expand(FIELD - 3, -1))  # water has three nodes
    convolutions = PatchySanConvolutions(shape).convs.parameters()
    assert sum(each.numel() for each in convolutions) == 5 * (17 * 128 * 128 + 128)  # as many as the Ego-CNN has
    assert batch.present.tolist() == [[1] * 4 + [0] * 6, [1] * 3 + [0] * 7]


def hops_from(graphs: Graphs, start: int, most: int) -> dict[int, int]:
    """Breadth first: how far every other node within reach is."""
    distance, frontier = {start: 0}, [start]
    for hop in range(1, most + 1):
        reached = [int(n) for node in frontier for n in graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]]]
        frontier = [node for node in dict.fromkeys(reached) if node not in distance]
        distance |= dict.fromkeys(frontier, hop)
    del distance[start]
    return distance


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_nearest_nodes_are_those_of_fewest_hops_also_in_small_portions(
    hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = random_connected(5, nodes=25, extra=12, seed=1)
    order = Ranking.fit(graphs).order(graphs)
    wanted = np.full((graphs.n_nodes, 8), -1)
    for node in range(graphs.n_nodes):
        reached = hops_from(graphs, node, hops)
        best = sorted(reached, key=lambda other: (reached[other], order.place[other]))[:8]
        wanted[node, : len(best)] = best
    np.testing.assert_array_equal(reach.nearest_nodes(graphs, order, 8, hops=hops), wanted)
    chain = one_graph(3, [(0, 1), (1, 2)], edge_weight=[0.1, 9.0])  # a heavy edge brings nothing nearer
    assert reach.nearest_nodes(chain, Ranking.fit(chain).order(chain), 2, hops=2)[0].tolist() == [1, 2]
    monkeypatch.setattr(reach, "PAIRS_AT_ONCE", 10)
    np.testing.assert_array_equal(reach.nearest_nodes(graphs, order, 8, hops=hops), wanted)
