"""The multiscale Laplacian kernel: values by the definition, and what takes too long."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.kernels.laplacian import LaplacianKernel, Scale, Spread, overlap, project
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs, random_trees


def values(graphs: Graphs, level: int, smoothing: float) -> Floats:
    """Kernel values with every node in the sample."""
    kernel = LaplacianKernel(seed=0, levels=(level,), smoothing=(smoothing,), sample=graphs.n_nodes)
    description = next(kernel.fit(graphs))
    np.testing.assert_allclose(kernel.describe(graphs, Scale(level, smoothing)).inverse, description.inverse)
    return kernel.compare(description, description)


def flg(laplacians: list[Floats], features: list[Floats], smoothing: float) -> Floats:
    """The kernel of whole graphs, word by word."""

    def s(laplacian: Floats, u: Floats) -> Floats:
        inverse: Floats = np.linalg.inv(laplacian + smoothing * np.eye(len(laplacian)))
        spread: Floats = u.T @ inverse @ u + smoothing * np.eye(u.shape[1])
        return spread

    def k(one: Floats, other: Floats) -> float:
        middle = np.linalg.inv(np.linalg.inv(one) / 2 + np.linalg.inv(other) / 2)
        own = np.linalg.det(one) * np.linalg.det(other)
        return float(np.linalg.det(middle) ** 0.5 / own**0.25)

    spreads = [s(laplacian, u) for laplacian, u in zip(laplacians, features, strict=True)]
    return np.array([[k(one, other) for other in spreads] for one in spreads])


def by_definition(graphs: Graphs, levels: int, smoothing: float) -> Floats:
    """Without samples, flat arrays or batches: one dense adjacency matrix for all."""
    adjacency = np.zeros((graphs.n_nodes,) * 2)
    adjacency[graphs.entry_node, graphs.indices] = 1
    np.fill_diagonal(adjacency, 0)

    def laplacian(nodes: Ints) -> Floats:
        inside = adjacency[np.ix_(nodes, nodes)]
        matrix: Floats = np.diag(inside.sum(axis=1)) - inside
        return matrix

    assert graphs.node_label is not None
    features = np.eye(3)[graphs.node_label]
    reach = np.eye(graphs.n_nodes)
    for _ in range(levels):
        reach = np.minimum(reach + reach @ adjacency, 1)
        around = [np.flatnonzero(row) for row in reach]
        kernel = flg([laplacian(nodes) for nodes in around], [features[nodes] for nodes in around], smoothing)
        features = kernel @ project(kernel)
    whole = [np.arange(first, last) for first, last in zip(graphs.node_ptr, graphs.node_ptr[1:], strict=False)]
    return flg([laplacian(nodes) for nodes in whole], [features[nodes] for nodes in whole], smoothing)


labelled_graphs = random_graphs(node_labels=True, edge_labels=False, weights=False, attributes=False)


@settings(deadline=None, max_examples=30)
@given(labelled_graphs, st.integers(0, 3))
def test_values_are_those_of_the_definition(graphs: Graphs, level: int) -> None:
    np.testing.assert_allclose(values(graphs, level, 0.5), by_definition(graphs, level, 0.5), rtol=1e-4, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_nothing_overlaps_more_than_the_same(seed: int, width: int) -> None:
    random = np.random.default_rng(seed)
    root = random.normal(size=(5, width, width + 2))
    s = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(width)
    spread = Spread(np.linalg.inv(s), np.linalg.slogdet(s)[1])
    alike = overlap(spread, spread)
    np.testing.assert_allclose(np.diag(alike), 1, rtol=1e-9)
    assert ((alike > 0) & (alike < 1 + 1e-9)).all()


def test_values_do_not_depend_on_how_many_pairs_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = random_trees(9, nodes=7, seed=0)
    expected = values(trees, 1, 0.1)
    monkeypatch.setattr("lab.rivals.kernels.laplacian.PAIRS_AT_ONCE", 5)
    np.testing.assert_allclose(values(trees, 1, 0.1), expected)


def test_graphs_without_nodes_are_described_too() -> None:
    graphs = Graphs.from_edges(node_counts=[0, 2, 2], edges=np.array([[0, 1]]))
    assert np.isfinite(values(graphs, 1, 0.1)).all()


def test_hubs_whose_surroundings_take_too_long_are_refused_before_any_work() -> None:
    star = one_graph(40_001, [(0, leaf) for leaf in range(1, 40_001)])
    with pytest.raises(DataError, match=r"up to .* multiplications on 1 graphs with up to 40001 nodes within 3 edges"):
        next(LaplacianKernel(seed=0).fit(star))
