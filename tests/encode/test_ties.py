from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from egocnn.config import ReadConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode import ranking as module
from egocnn.encode.colours import initial_colours, stable_colours
from egocnn.encode.ranking import Ranking, settle
from tests.support.invariance import relabel
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs


def tiers(graphs: Graphs) -> tuple[Ints, Ints]:
    """Tiers by stable colours, and the same settled."""
    stable = stable_colours(graphs, initial_colours(graphs), most=100)
    _, first, which = np.unique(np.sort(stable), return_index=True, return_inverse=True)
    tier = np.empty(len(stable), np.int64)
    tier[np.argsort(stable, kind="stable")] = first[which]
    return tier, settle(graphs, stable, tier, most_rounds=100)


def matrix(graphs: Graphs) -> NDArray[Any]:
    """One graph as a dense table that tells all about its edges, and its nodes on the diagonal."""
    n = graphs.n_nodes
    dense = np.zeros((n, n, 7))
    rows, columns = graphs.entry_node, graphs.indices
    dense[rows, columns, 0] = 1
    for layer, values in ((1, graphs.edge_label), (2, graphs.edge_weight)):
        if values is not None:
            dense[rows, columns, layer] = values
    if graphs.node_label is not None:
        dense[np.arange(n), np.arange(n), 3] = graphs.node_label
    if graphs.node_attr is not None:
        dense[np.arange(n), np.arange(n), 4:6] = graphs.node_attr
    return dense


def orbits_are(tier: Ints, dense: NDArray[Any]) -> bool:
    """Whether any two nodes of a tier can be carried into each other by a symmetry of the graph; tries them all."""
    n = len(tier)
    reach = {(node, node) for node in range(n)}
    for moved in permutations(range(n)):
        if (dense[np.ix_(moved, moved)] == dense).all():
            reach |= set(enumerate(moved))
    return all((one, other) in reach for one in range(n) for other in range(n) if tier[one] == tier[other])


@settings(max_examples=100)
@given(random_graphs(max_graphs=1, max_nodes=6), st.integers(0, 20))
def test_symmetric_nodes_are_ordered_the_same_whatever_their_ids(graphs: Graphs, seed: int) -> None:
    dense = matrix(graphs)
    order = Ranking.fit(graphs).order(graphs)
    if not orbits_are(order.tier, dense):
        return
    relabelled, _ = relabel(graphs, seed)
    other = Ranking.fit(relabelled).order(relabelled)
    before, after = dense[np.ix_(order.nodes, order.nodes)], matrix(relabelled)[np.ix_(other.nodes, other.nodes)]
    np.testing.assert_array_equal(before, after)


@settings(max_examples=100)
@given(random_graphs(max_graphs=3))
def test_settled_tiers_split_tiers_and_keep_only_twins_together(graphs: Graphs) -> None:
    tier, settled = tiers(graphs)
    assert (settled >= tier).all()
    for one in range(graphs.n_nodes):
        for other in range(graphs.n_nodes):
            if graphs.graph_of[one] != graphs.graph_of[other] or one == other:
                continue
            if settled[one] == settled[other]:
                assert tier[one] == tier[other]
                swapped = np.arange(graphs.n_nodes)
                swapped[[one, other]] = other, one
                dense = matrix(graphs)
                np.testing.assert_array_equal(dense[np.ix_(swapped, swapped)], dense)
            elif tier[one] < tier[other]:
                assert settled[one] < settled[other]


def test_cliques_that_share_a_node_are_kept_together() -> None:
    cliques = [(0, 2, 5, 7), (0, 1, 4, 6), (0, 3, 8, 9)]
    graphs = one_graph(10, [(u, v) for clique in cliques for u in clique for v in clique if u < v])
    tier, settled = tiers(graphs)
    assert len(set(tier)) == 2
    groups = {frozenset(np.flatnonzero(settled == value)) - {0} for value in set(settled)} - {frozenset()}
    assert groups == {frozenset(clique) - {0} for clique in cliques}


def test_twins_need_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TIES", 0)
    star = one_graph(9, [(0, n) for n in range(1, 9)])
    clique = one_graph(5, [(u, v) for u in range(5) for v in range(u)])
    for graphs in (star, clique):
        np.testing.assert_array_equal(*tiers(graphs))


def test_a_graph_with_more_ties_than_allowed_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    chains = one_graph(13, [edge for n in range(1, 7) for edge in ((0, n), (n, n + 6))])  # six chains from one node
    assert len(set(tiers(chains)[1])) == 13
    monkeypatch.setattr(module, "MOST_TIES", 9)  # the six inner nodes make five ties, and so do the six ends
    np.testing.assert_array_equal(*tiers(chains))
    monkeypatch.setattr(module, "MOST_TIES", 10)
    assert len(set(tiers(chains)[1])) == 13


@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "IMDB-BINARY"])
def test_real_graphs_are_ordered_the_same_whatever_their_ids(name: str, data_folder: Path) -> None:
    from egocnn.data.sources.tu import read_tu

    graphs = read_tu(data_folder / "tu" / f"{name}.zip", ReadConfig())[:200]
    relabelled, _ = relabel(graphs, 0)
    ranking = Ranking.fit(graphs)
    orders = [ranking.order(collection) for collection in (graphs, relabelled)]
    for number in range(len(graphs)):
        tables = []
        for collection, order in zip((graphs, relabelled), orders, strict=True):
            first, last = int(graphs.node_ptr[number]), int(graphs.node_ptr[number + 1])
            nodes = np.argsort(order.place[first:last])
            tables.append(matrix(collection[[number]].replace(node_attr=None))[np.ix_(nodes, nodes)])
        np.testing.assert_array_equal(tables[0], tables[1])
